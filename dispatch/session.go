package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Workers of each kind. They wait for the store most of the time.
const (
	reconcilers = 8 // batches brought forward at once
	loaders     = 8 // chunks claimed and read at once
)

// settleTime bounds how long a shutdown waits for the store, unless the store needs longer.
const settleTime = 5 * time.Second

// session is the dispatcher's work under one registration with the store. It connects the parts,
// starts them and stops them in order. Each part owns its state and knows the others only by the
// functions that it was given.
type session struct {
	drain      time.Duration
	settling   time.Duration // limit of a shutdown's wait for the journals
	log        *slog.Logger
	lease      *lease
	runs       *runs
	reconciler *reconciler
	claimer    *claimer
	transport  *transport
	loop       *loop
	progress   *progress
	sweeper    *sweeper
	discover   []func(ctx context.Context) // one for each upstream
	tasks      *tasks
	ready      func(bool)
}

// newSession registers with the store and connects the parts. lose ends the session.
func (d *Dispatcher) newSession(
	ctx context.Context, lose context.CancelCauseFunc,
) (*session, error) {
	planner, err := d.newPlanner()
	if err != nil {
		return nil, err
	}
	lease, err := register(ctx, d.deps.Metadata, d.deps.Node, d.cfg.LeaseTTL, d.log)
	if err != nil {
		return nil, err
	}
	var (
		log    = lease.log
		inbox  = newInbox()
		runs   = newRuns()
		memory = newMemory(d.cfg.Memory)
		tasks  = newTasks(ctx)
	)
	recorder := &recorder{results: &memory.results, inputs: &memory.inputs, metrics: d.metrics,
		log: log, notify: inbox.put, lose: lose, blockedChunks: map[*chunk]bool{}}
	rc := &reconciler{cfg: d.cfg, metadata: d.deps.Metadata, blobs: d.deps.Blobs,
		journals: d.deps.Journals, owner: lease.owner, expiry: d.deps.Expiry, log: log,
		metrics: d.metrics, notify: inbox.put, runs: runs, tasks: tasks, queue: newQueue[string](),
		remaining: &remaining{store: d.deps.Metadata}}
	cl := &claimer{leaseTTL: d.cfg.LeaseTTL, metadata: d.deps.Metadata, blobs: d.deps.Blobs,
		journals: d.deps.Journals, owner: lease.owner, leading: lease.leading, log: log,
		notify: inbox.put, runs: runs, tasks: tasks, memory: memory,
		loads:    newQueue[*plan.JobKey](),
		recorder: recorder, reconciler: rc}
	recorder.finishChunk, recorder.stopIfOver = cl.finishLater, rc.stopIfOver
	tr := newTransport(d.cfg.RequestTimeout, d.runners, recorder, &memory.answers, inbox.put)
	tr.log, tr.metrics = log, d.metrics
	board := &progress{store: d.deps.Progress, owner: lease.owner, timeout: d.cfg.LeaseTTL,
		leading: lease.leading, runs: runs, tasks: tasks, metrics: d.metrics, log: log}
	lease.runners, lease.lose = len(d.runners), lose
	lease.recount, lease.held = rc.recount, runs.heldModels
	lease.notify = func(ev plan.Event) { inbox.put(ev) }
	s := &session{
		drain: d.cfg.Drain, settling: settleLimit(d.deps.Journals.Durability()), log: log,
		lease: lease, runs: runs, reconciler: rc, claimer: cl,
		transport: tr, progress: board, tasks: tasks, ready: d.ready.Store,
		sweeper: &sweeper{metadata: d.deps.Metadata, journals: d.deps.Journals,
			expiry: d.deps.Expiry, log: log},
		loop: &loop{planner: planner, inbox: inbox, watcher: d.deps.Watcher, memory: memory,
			expired: lease.expired, send: tr.submit, load: cl.enqueue, release: cl.releaseLater,
			recordFailure: recorder.recordFailure, post: board.post,
			postEvery: d.cfg.ProgressEvery,
			chunks:    map[chunkKey]*chunk{}, flights: map[flightKey]*flight{},
			done: make(chan struct{})},
	}
	for _, u := range d.runners {
		s.discover = append(s.discover, func(ctx context.Context) {
			u.watchModels(ctx, d.cfg, log, lease.leading.served)
		})
	}
	return s, nil
}

// session registers, works until ctx is done or the lease is lost, and cleans up.
func (d *Dispatcher) session(ctx context.Context) error {
	// taking ends first: no more batches, chunks and lines. The loop and the requests in flight go
	// on until they are drained.
	taking, stopTaking := context.WithCancelCause(ctx)
	defer stopTaking(nil)
	s, err := d.newSession(ctx, stopTaking)
	if err != nil {
		return err
	}
	d.current.Store(s)
	defer d.current.CompareAndSwap(s, nil)
	s.run(taking)
	lost := context.Cause(taking)
	s.shutdown(ctx, lost)
	if ctx.Err() != nil {
		// The journals are flushed: another process, or the next start, can take over at once.
		s.lease.unregister(ctx)
		return nil
	}
	return lost
}

// run takes work until taking is done. The loop continues after that.
func (s *session) run(taking context.Context) {
	go s.loop.run()
	var takers sync.WaitGroup
	takers.Go(func() { s.lease.renewUntil(taking) })
	takers.Go(func() { s.lease.leadUntil(taking) })
	for range reconcilers {
		takers.Go(func() { s.reconciler.queue.run(taking, s.reconciler.reconcile) })
	}
	for range loaders {
		takers.Go(func() { s.claimer.loads.run(taking, s.claimer.load) })
	}
	takers.Go(func() { s.reconciler.poll(taking, func() { s.ready(true) }) })
	takers.Go(func() { s.sweeper.run(taking) })
	for _, discover := range s.discover {
		takers.Go(func() { discover(taking) })
	}
	<-taking.Done()
	s.ready(false)
	s.reconciler.queue.close()
	takers.Wait()
}

// shutdown drains the loop, makes the answers durable and closes all chunks.
func (s *session) shutdown(ctx context.Context, lost error) {
	wait := s.drain
	if ctx.Err() == nil { // the lease is lost: answers that come now could not be recorded
		s.log.WarnContext(ctx, "evicting the lines in flight", "error", lost)
		wait = 0
	}
	drained := s.loop.drain()
	select {
	case <-drained:
	case <-time.After(wait):
		s.tasks.evict()
		<-drained
	}
	s.transport.stop()
	s.settle()
}

// settle flushes the journals of all chunks, finishes the chunks that are complete thereby, and
// closes the others.
func (s *session) settle() {
	limit := time.AfterFunc(s.settling, s.tasks.evict)
	defer limit.Stop()
	var chunks []*chunk
	s.runs.each(func(r *run) { chunks = append(chunks, r.heldChunks()...) })
	var flushing sync.WaitGroup
	for _, c := range chunks {
		flushing.Go(func() {
			if err := c.journal.Flush(s.tasks.ctx); err != nil {
				s.log.Warn("could not flush a journal", "batch_id", c.Batch, "chunk", c.Index,
					"error", err)
			}
		})
	}
	flushing.Wait()
	s.tasks.group.Wait()
	s.runs.each(func(r *run) {
		for _, c := range r.heldChunks() {
			c.journal.Close(context.WithoutCancel(s.tasks.ctx))
		}
		r.close()
	})
	s.tasks.evict()
}
