package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// keepers is how many batches are brought forward at once, loaders how many chunks are claimed and
// read at once. Both wait for the store most of the time.
const (
	keepers = 8
	loaders = 8
)

// session is the work under one registration with the store.
type session struct {
	*Dispatcher
	owner   store.Owner
	log     *slog.Logger
	planner *plan.Planner
	inbox   *inbox
	keep    *workqueue         // batches to look at
	loads   *fifo[plan.JobKey] // jobs to claim chunks for, one chunk each time
	leading *leadership
	senders senders
	memory  *memory

	// work is what lines under way and everything that must be written down live in: it outlasts
	// ctx by the drain.
	work       context.Context
	endWork    context.CancelCauseFunc
	background sync.WaitGroup

	mu    sync.Mutex
	runs  map[string]*run
	stuck map[*chunk]bool // chunks whose journals can't be written now

	renewed atomic.Pointer[time.Time] // when the lease was last prolonged; the clock is monotonic
	// lose ends the session: another holds the lease, or a chunk of it, now.
	lose context.CancelCauseFunc

	// lines by batch and model, as counted when it last began to lead
	left    atomic.Pointer[map[string]map[string]int]
	writing atomic.Bool // progress is being posted
	mute    atomic.Bool // the last post of progress found no hearing
	pools   atomic.Pointer[[]plan.PoolStatus]
}

// session registers, works until ctx is done or the lease is lost, and cleans up.
func (d *Dispatcher) session(ctx context.Context) error {
	registered := time.Now()
	owner, err := d.deps.Metadata.Register(ctx, d.deps.Node, d.cfg.LeaseTTL)
	if err != nil {
		return fmt.Errorf("register node %s: %w", d.deps.Node, err)
	}
	planner, err := d.newPlanner()
	if err != nil {
		return err
	}
	s := &session{
		Dispatcher: d, owner: owner, planner: planner, inbox: newInbox(), keep: newWorkqueue(),
		loads:   newFIFO[plan.JobKey](),
		leading: newLeadership(registered), memory: newMemory(d.cfg.Memory),
		log: d.log.With("node", owner.Node), runs: map[string]*run{}, stuck: map[*chunk]bool{},
	}
	s.work, s.endWork = context.WithCancelCause(context.WithoutCancel(ctx))
	s.renewed.Store(&registered)
	s.senders.send, s.senders.memory = s.send, &s.memory.answers
	d.current.Store(s)
	defer d.current.CompareAndSwap(s, nil)

	// taking ends first: no more batches, chunks and lines. The loop and what is under way go on
	// until drained.
	taking, stopTaking := context.WithCancelCause(ctx)
	s.lose = stopTaking
	defer stopTaking(nil)
	var takers sync.WaitGroup
	takers.Go(func() { s.heartbeat(taking) })
	takers.Go(func() { s.lead(taking) })
	for range keepers {
		takers.Go(func() { s.keep.run(taking, s.keepBatch) })
	}
	for range loaders {
		takers.Go(func() { s.loads.run(taking, s.loadChunk) })
	}
	takers.Go(func() { s.watch(taking) })
	takers.Go(func() { s.sweepJournals(taking) })
	for _, u := range d.upstreams {
		takers.Go(func() { s.watchUpstream(taking, u) })
	}
	loopDone := make(chan struct{})
	go func() { defer close(loopDone); s.loop() }()

	<-taking.Done()
	lost := context.Cause(taking)
	d.ready.Store(false)
	s.keep.close()
	takers.Wait()
	s.shutdown(ctx, lost)
	<-loopDone
	s.senders.stop()
	s.settle()
	if ctx.Err() != nil {
		// The journals are flushed; let others, or the next start, take over at once.
		farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := d.deps.Metadata.Unregister(farewell, owner); err != nil {
			s.log.WarnContext(ctx, "could not unregister; the claims end with the lease",
				"error", err)
		}
		return nil
	}
	return lost
}

// shutdown lets lines under way finish, recalls the rest and stops the loop.
func (s *session) shutdown(ctx context.Context, lost error) {
	drained := make(chan struct{})
	s.inbox.put(drain{done: drained})
	wait := s.cfg.Drain
	if ctx.Err() == nil { // the lease is lost: what comes back now could not be written down
		s.log.WarnContext(ctx, "recalling the lines under way", "error", lost)
		wait = 0
	}
	select {
	case <-drained:
	case <-time.After(wait):
		s.endWork(openai.ErrRecalled)
		<-drained
	}
}

// heartbeat keeps the lease alive, and ends the session when it is lost.
func (s *session) heartbeat(ctx context.Context) {
	tick := time.NewTicker(s.cfg.LeaseTTL / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		renewing, cancel := context.WithTimeout(ctx, s.cfg.LeaseTTL)
		err := s.deps.Metadata.Renew(renewing, s.owner, s.cfg.LeaseTTL)
		if err == nil {
			err = s.confirmLead(renewing) // before any line starts on the strength of the new lease
		}
		cancel()
		switch {
		case err == nil:
			s.renewed.Store(&asked)
			s.inbox.put(plan.Tick{}) // if starts were held, they may go on
		case isFenced(err):
			s.lose(err)
			return
		case err != nil && ctx.Err() == nil:
			s.log.WarnContext(ctx, "could not renew the lease", "error", err)
		}
	}
}

// lapsed reports whether the lease may have run out, as far as this process can know: it was
// frozen, or the store has not answered. What it holds may be another's then.
func (s *session) lapsed(now time.Time) bool { return now.Sub(*s.renewed.Load()) > s.cfg.LeaseTTL }

// watch looks for batches that are new or changed: all of them first, then those that changed
// since.
func (s *session) watch(ctx context.Context) {
	const page = 500
	var revision int64
	for {
		var ids []string
		var next int64
		var err error
		if revision == 0 {
			err = s.countLeft(ctx)
		}
		if err == nil {
			ids, next, err = s.deps.Metadata.ChangedBatches(ctx, revision, page)
		}
		if err != nil {
			if ctx.Err() == nil {
				s.log.WarnContext(ctx, "could not look for changed batches", "error", err)
			}
		} else {
			revision = next
			for _, id := range ids {
				s.keep.add(id)
			}
			if len(ids) == page {
				continue
			}
			s.ready.Store(true)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(s.cfg.PollEvery):
		}
	}
}

func (s *session) run(id string) *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[id]
}

// settle makes durable what came back, finishes what is whole thereby, and lets go of everything.
func (s *session) settle() {
	impatience := time.AfterFunc(settleTime, func() { s.endWork(openai.ErrRecalled) })
	defer impatience.Stop()
	s.mu.Lock()
	runs := slices.Collect(maps.Values(s.runs))
	s.mu.Unlock()
	var closing sync.WaitGroup
	for _, r := range runs {
		for _, c := range r.held() {
			closing.Go(func() {
				if err := c.journal.Flush(s.work); err != nil {
					s.log.Warn("could not flush a journal", "batch_id", c.Batch, "chunk", c.Index,
						"error", err)
				}
			})
		}
	}
	closing.Wait()
	s.background.Wait()
	for _, r := range runs {
		for _, c := range r.held() {
			c.journal.Close()
		}
		r.close()
	}
	s.endWork(openai.ErrRecalled)
}

// settleTime bounds how long a shutdown waits for the store.
const settleTime = 5 * time.Second
