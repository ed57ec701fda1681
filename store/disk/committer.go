package disk

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/store/journals"
)

const (
	// parallelCommits limits the files that are synced at the same time. File systems join such
	// syncs into fewer writes of their own journal.
	parallelCommits = 8
	// Buffers of up to pooledBufferSize are reused, pooledBytes of them in all.
	pooledBytes      = 2 << 20
	pooledBufferSize = 1 << 20
)

// committer runs the group commits of a Store. Lock order: a journal's mutex before the
// committer's.
type committer struct {
	opts     Options
	appended atomic.Int64 // bytes since the last commit round

	mu         sync.Mutex
	fresh      []*journal // have records that no round has tried to write
	freshSince time.Time
	stalled    []*journal // refused by the medium
	retryAt    time.Time
	forced     bool // a caller flushes: the next round includes the stalled journals
	buffers    [][]byte
	pooled     int // bytes of buffers

	large   journals.Large
	changed chan struct{} // the next round may be due earlier
	now     chan struct{} // starts a round
	stop    chan struct{}
	stopped chan struct{}
}

func newCommitter(opts Options) *committer {
	return &committer{
		opts:    opts,
		large:   journals.NewLarge(),
		changed: make(chan struct{}, 1),
		now:     make(chan struct{}, 1),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
}

// run starts rounds until close.
func (c *committer) run() {
	defer close(c.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if at := c.nextRound(); !at.IsZero() {
			timer.Reset(time.Until(at))
			due = timer.C
		}
		select {
		case <-c.changed:
		case <-c.now:
			c.round()
		case <-due:
			c.round()
		case <-c.stop:
			return
		}
	}
}

// close stops the rounds. The journals must be closed before.
func (c *committer) close() {
	close(c.stop)
	<-c.stopped
}

// nextRound returns the time at which the next round is due; zero: there is nothing to write.
func (c *committer) nextRound() (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fresh) > 0 {
		at = c.freshSince.Add(c.opts.CommitAfter)
	}
	if len(c.stalled) > 0 && (at.IsZero() || c.retryAt.Before(at)) {
		at = c.retryAt
	}
	return at
}

// add puts a journal into the next round.
func (c *committer) add(j *journal) {
	c.mu.Lock()
	first := len(c.fresh) == 0
	if first {
		c.freshSince = time.Now()
	}
	c.fresh = append(c.fresh, j)
	c.mu.Unlock()
	if first {
		signal(c.changed)
	}
}

// count adds appended bytes, and starts a round when CommitBytes are waiting.
func (c *committer) count(appended int) {
	limit := int64(c.opts.CommitBytes)
	if sum := c.appended.Add(int64(appended)); sum >= limit && sum-int64(appended) < limit {
		signal(c.now)
	}
}

// force starts a round that includes the stalled journals.
func (c *committer) force() {
	c.mu.Lock()
	c.forced = true
	c.mu.Unlock()
	signal(c.now)
}

// round commits all journals that are due.
func (c *committer) round() {
	due := c.take(time.Now())
	refused := make([]bool, len(due))
	var running sync.WaitGroup
	slots := make(chan struct{}, parallelCommits)
	for i, j := range due {
		slots <- struct{}{}
		running.Go(func() {
			refused[i] = j.commit()
			<-slots
		})
	}
	running.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	for i, j := range due {
		if refused[i] {
			c.stalled = append(c.stalled, j)
			c.retryAt = time.Now().Add(c.opts.RetryAfter)
		}
	}
}

// take returns the journals of a round and removes them from the lists.
func (c *committer) take(now time.Time) []*journal {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.appended.Store(0)
	due := c.fresh
	c.fresh = nil
	if c.forced || !now.Before(c.retryAt) {
		due = append(due, c.stalled...)
		c.stalled = nil
	}
	c.forced = false
	return due
}

// takeBuffer returns a buffer that was returned before; nil: there is none.
func (c *committer) takeBuffer() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.buffers)
	if n == 0 {
		return nil
	}
	b := c.buffers[n-1]
	c.buffers[n-1] = nil
	c.buffers = c.buffers[:n-1]
	c.pooled -= cap(b)
	return b
}

// returnBuffer makes a buffer available to takeBuffer.
func (c *committer) returnBuffer(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap(b) > 0 && cap(b) <= pooledBufferSize && c.pooled+cap(b) <= pooledBytes {
		c.pooled += cap(b)
		c.buffers = append(c.buffers, b[:0])
	}
}

// signal wakes the receiver of c, at once or when it receives next.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
