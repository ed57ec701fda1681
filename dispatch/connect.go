package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// shared holds what several parts of a session use.
type shared struct {
	cfg    Config // as of the session's beginning
	owner  store.Owner
	log    *slog.Logger
	notify func(message any) // sends to the loop
	lose   context.CancelCauseFunc
	runs   *runs
	tasks  *tasks
	memory *memory
}

// newSession registers with the store and connects the parts. lose ends the session.
func (d *Dispatcher) newSession(
	ctx context.Context, lose context.CancelCauseFunc,
) (*session, error) {
	cfg := d.settings.Load().Config
	planner, err := d.newPlanner()
	if err != nil {
		return nil, err
	}
	lease, err := register(ctx, d.deps.Metadata, d.deps.Node, cfg.LeaseTTL, d.log)
	if err != nil {
		return nil, err
	}
	inbox := newInbox()
	with := shared{cfg: cfg, owner: lease.owner, log: lease.log, notify: inbox.put, lose: lose,
		runs: newRuns(), tasks: newTasks(ctx), memory: newMemory(cfg.Memory)}
	s := &session{
		settings: d.settings.Load,
		settling: settleLimit(d.deps.Journals.Durability()), log: lease.log,
		lease: lease, runs: with.runs, tasks: with.tasks, ready: d.ready.Store,
		misplaced:  d.deps.Misplaced,
		reconciler: d.newReconciler(with), progress: d.newProgress(with, lease.leading),
		sweeper: &sweeper{metadata: d.deps.Metadata, journals: d.deps.Journals,
			expiry: d.deps.Expiry, log: lease.log},
	}
	s.follower = &follower{metadata: d.deps.Metadata, board: d.deps.Progress,
		leading: lease.leading, runs: with.runs, remaining: s.reconciler.remaining,
		notify: inbox.put, log: lease.log}
	recorder := d.newRecorder(with)
	s.claimer = d.newClaimer(with, lease.leading, recorder, s.reconciler)
	s.finisher = d.newFinisher(with, s.reconciler)
	s.claimer.finisher = s.finisher
	recorder.finishChunk, recorder.stopIfOver = s.finisher.add, s.reconciler.stopIfOver
	s.reconciler.stopped = func(r *run) {
		s.claimer.abandonAhead(r, func(string) bool { return true })
		s.finisher.hurry()
	}
	s.transport = d.newTransport(with, recorder)
	s.loop = newLoop(planner, inbox, with.memory, d.deps.Watcher, s.progress.failures)
	s.loop.decisions = decision.NewRecorder(d.decisions, planner)
	s.loop.expired, s.loop.recordFailure = lease.expired, recorder.recordFailure
	s.loop.send, s.loop.load, s.loop.release = s.transport.submit, s.claimer.enqueue,
		s.claimer.releaseLater
	s.loop.began = func(r *run) { s.reconciler.enqueue(r.id) }
	learning := d.newLearning(with)
	s.loop.post, s.loop.postEvery = func(now time.Time, planner *plan.Planner) {
		s.progress.post(now, planner)
		learning.post(now, planner)
	}, cfg.ProgressEvery
	s.loop.beforeDrain = func(now time.Time, planner *plan.Planner) {
		s.progress.hurry()
		learning.end(now, planner)
	}
	lease.recall = learning.recall
	lease.lose = lose
	lease.recount, lease.held = s.reconciler.recount, with.runs.heldModels
	lease.giveBack = func(names map[string]bool) {
		with.runs.each(func(r *run) {
			s.claimer.abandonAhead(r, func(model string) bool { return names[modelName(model)] })
		})
		inbox.put(unservedModels{names})
	}
	lease.demanded = with.runs.models
	lease.scaled = func() map[string]string { return d.settings.Load().ScaledModels }
	lease.maxModels = func() int { return d.settings.Load().MaxModels }
	s.reconciler.newDemand = lease.leading.newDemand
	lease.notify = func(ev plan.Event) { inbox.put(ev) }
	s.modelsFound = func(u *runner, list modelList) {
		lease.leading.served(u, list)
		if list.first && d.catalog.complete() {
			s.reconcileUnserved()
		}
	}
	return s, nil
}

func (d *Dispatcher) newReconciler(with shared) *reconciler {
	rc := &reconciler{
		metadata: d.deps.Metadata, journals: d.deps.Journals, expiry: d.deps.Expiry,
		pollWait: d.pollWait, retryWait: with.cfg.PollEvery, wake: make(chan struct{}, 1),
		queue:     newQueue[string](),
		remaining: &remaining{store: d.deps.Metadata}, catalog: d.catalog,
		owner: with.owner, log: with.log, notify: with.notify, runs: with.runs,
		shown: d.shown, tasks: with.tasks, metrics: d.metrics,
	}
	rc.cancelGrace = func() time.Duration { return d.settings.Load().CancelGrace }
	rc.admitter = &admitter{
		metadata: d.deps.Metadata, blobs: d.deps.Blobs, runs: with.runs, log: with.log,
		chunkLines: with.cfg.ChunkLines, chunkBytes: with.cfg.ChunkBytes,
	}
	rc.finalizer = &finalizer{
		metadata: d.deps.Metadata, blobs: d.deps.Blobs, journals: d.deps.Journals,
		owner: with.owner, log: with.log, metrics: d.metrics, enqueueAfter: rc.queue.addAfter,
	}
	return rc
}

func (d *Dispatcher) newClaimer(
	with shared, leading *leadership, results chunkResults, batches batchControl,
) *claimer {
	return &claimer{
		leaseTTL: with.cfg.LeaseTTL, metadata: d.deps.Metadata, blobs: d.deps.Blobs,
		journals: d.deps.Journals, loads: newQueue[*plan.JobKey](),
		leading: leading, results: results, batches: batches,
		owner: with.owner, log: with.log, notify: with.notify, runs: with.runs,
		tasks: with.tasks, memory: with.memory,
	}
}

func (d *Dispatcher) newFinisher(with shared, rc *reconciler) *finisher {
	return &finisher{
		metadata: d.deps.Metadata, owner: with.owner, log: with.log, notify: with.notify,
		lose: with.lose, tasks: with.tasks, enqueue: rc.enqueue, hurried: make(chan struct{}, 1),
	}
}

func (d *Dispatcher) newRecorder(with shared) *recorder {
	return &recorder{
		results: &with.memory.results, inputs: &with.memory.inputs, metrics: d.metrics,
		log: with.log, notify: with.notify, lose: with.lose, blockedChunks: map[*chunk]bool{},
	}
}

func (d *Dispatcher) newProgress(with shared, leading *leadership) *progress {
	p := &progress{
		store: d.deps.Progress, timeout: with.cfg.LeaseTTL, metrics: d.metrics, leading: leading,
		owner: with.owner, log: with.log, runs: with.runs, tasks: with.tasks,
		catalog: d.catalog, takeovers: takeovers{}, onPools: d.deps.OnPools,
		forecasts: &d.forecasts, onPosted: d.deps.OnPosted,
		failures: &runnerFailures{runners: map[string]*[recentMinutes]minuteFailures{}},
		away:     d.deps.Away,
	}
	if board, forgets := d.deps.Progress.(forgetful); forgets {
		p.againEvery = board.PostAgainEvery()
	}
	if board, slow := d.deps.Progress.(unhurried); slow {
		p.writeEvery = board.PostEvery()
	}
	return p
}

func (d *Dispatcher) newLearning(with shared) *learning {
	return &learning{store: d.deps.Metadata, owner: with.owner, every: with.cfg.LearnedEvery,
		timeout: with.cfg.LeaseTTL / 3, tasks: with.tasks, log: with.log}
}

func (d *Dispatcher) newTransport(with shared, to answerRecorder) *transport {
	t := &transport{
		settings: d.settings.Load, metrics: d.metrics, recorder: to,
		answers: &with.memory.answers, notify: with.notify, log: with.log,
	}
	t.rooms = &rooms{spool: d.deps.Spool, notify: with.notify, log: with.log,
		knows: func(batch string) bool { return with.runs.get(batch) != nil },
		jobs:  map[plan.JobKey]*largeAnswers{}}
	t.senders = newSenders(t.answers, t.send)
	return t
}
