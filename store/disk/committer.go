package disk

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// parallelCommits bounds how many files are made durable at the same time. File systems join
	// their syncs into fewer writes of their own journal.
	parallelCommits = 8
	// parallelLarge bounds how many large records are written at the same time.
	parallelLarge = 2
	// Buffers up to keptBufferSize are used again, at most keptBytes of them together.
	keptBytes      = 2 << 20
	keptBufferSize = 1 << 20
)

// committer runs the group commits of a Store. Lock order: a journal's mutex before the
// committer's.
type committer struct {
	opts     Options
	appended atomic.Int64 // bytes since the last round

	mu         sync.Mutex
	fresh      []*journal // have records that nobody tried to write yet
	freshSince time.Time
	stalled    []*journal // were refused by the medium
	retryAt    time.Time
	forced     bool // somebody flushes: the next round takes the stalled ones too
	buffers    [][]byte
	kept       int // bytes of buffers

	large   chan struct{} // a token for each large record that is being written
	changed chan struct{} // the time of the next round may have come nearer
	hurry   chan struct{} // the next round is now
	stop    chan struct{}
	stopped chan struct{}
}

func newCommitter(opts Options) *committer {
	return &committer{
		opts:    opts,
		large:   make(chan struct{}, parallelLarge),
		changed: make(chan struct{}, 1),
		hurry:   make(chan struct{}, 1),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
	}
}

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
		case <-c.hurry:
			c.round()
		case <-due:
			c.round()
		case <-c.stop:
			return
		}
	}
}

// close stops the rounds; the journals are closed by then.
func (c *committer) close() {
	close(c.stop)
	<-c.stopped
}

// nextRound is when the next round is due; zero while there is nothing to write.
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

// count starts a round when much is waiting.
func (c *committer) count(appended int) {
	limit := int64(c.opts.CommitBytes)
	if sum := c.appended.Add(int64(appended)); sum >= limit && sum-int64(appended) < limit {
		signal(c.hurry)
	}
}

// force starts a round now that leaves nothing out.
func (c *committer) force() {
	c.mu.Lock()
	c.forced = true
	c.mu.Unlock()
	signal(c.hurry)
}

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

// take empties the lists into one round.
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

func (c *committer) borrow() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.buffers)
	if n == 0 {
		return nil
	}
	b := c.buffers[n-1]
	c.buffers[n-1] = nil
	c.buffers = c.buffers[:n-1]
	c.kept -= cap(b)
	return b
}

func (c *committer) giveBack(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cap(b) <= keptBufferSize && c.kept+cap(b) <= keptBytes {
		c.kept += cap(b)
		c.buffers = append(c.buffers, b[:0])
	}
}

// signal wakes whoever waits on c, now or at its next look.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
