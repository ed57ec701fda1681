package dispatch

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
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
	lease   *lease
	log     *slog.Logger
	planner *plan.Planner
	inbox   *inbox
	keep    *workqueue         // batches to look at
	loads   *fifo[plan.JobKey] // jobs to claim chunks for, one chunk each time
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
	lease, err := register(ctx, d.deps.Metadata, d.deps.Node, d.cfg.LeaseTTL, d.log)
	if err != nil {
		return err
	}
	planner, err := d.newPlanner()
	if err != nil {
		return err
	}
	s := &session{
		Dispatcher: d, lease: lease, planner: planner, inbox: newInbox(), keep: newWorkqueue(),
		loads:  newFIFO[plan.JobKey](),
		memory: newMemory(d.cfg.Memory),
		log:    lease.log, runs: map[string]*run{}, stuck: map[*chunk]bool{},
	}
	s.work, s.endWork = context.WithCancelCause(context.WithoutCancel(ctx))
	lease.runners, lease.recount, lease.held = len(d.upstreams), s.recount, s.heldModels
	lease.notify = func(ev plan.Event) { s.inbox.put(ev) }
	s.senders.send, s.senders.memory = s.send, &s.memory.answers
	d.current.Store(s)
	defer d.current.CompareAndSwap(s, nil)

	// taking ends first: no more batches, chunks and lines. The loop and what is under way go on
	// until drained.
	taking, stopTaking := context.WithCancelCause(ctx)
	s.lose, lease.lose = stopTaking, stopTaking
	defer stopTaking(nil)
	var takers sync.WaitGroup
	takers.Go(func() { lease.renewUntil(taking) })
	takers.Go(func() { lease.leadUntil(taking) })
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
		lease.unregister(ctx)
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
			c.journal.Close(context.WithoutCancel(s.work))
		}
		r.close()
	}
	s.endWork(openai.ErrRecalled)
}

// settleTime bounds how long a shutdown waits for the store.
const settleTime = 5 * time.Second
