package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/dispatch/claim"
	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/finish"
	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/send"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// shared holds what several parts of a session use.
type shared struct {
	cfg     Config // as of the session's beginning
	owner   store.Owner
	log     *slog.Logger
	inbox   *work.Inbox // of the loop
	lose    context.CancelCauseFunc
	runs    *work.Runs
	tasks   *work.Tasks
	memory  *work.Memory
	batches *work.Queue[string] // to reconcile
	leading *lead.Leadership
	fleet   *lead.Fleet
}

// newSession registers with the store and constructs the parts, each after those that it needs.
// What needs a part that comes later sends a message to the loop, or adds to a queue. lose ends the
// session.
func (d *Dispatcher) newSession(
	ctx context.Context, lose context.CancelCauseFunc,
) (*session, error) {
	cfg := d.settings.Load().Config
	planner, err := d.newPlanner()
	if err != nil {
		return nil, err
	}
	registered, err := lead.Register(ctx, d.deps.Metadata, d.deps.Node, cfg.LeaseTTL, d.log)
	if err != nil {
		return nil, err
	}
	inbox := work.NewInbox()
	tasks, batches := work.NewTasks(ctx, openai.ErrEvicted), work.NewQueue[string]()
	stopper := &stopper{metadata: d.deps.Metadata, batches: batches, tasks: tasks,
		log: registered.Log}
	with := shared{cfg: cfg, owner: registered.Owner, log: registered.Log, inbox: inbox,
		lose: lose, runs: work.NewRuns(tasks, inbox, stopper), tasks: tasks,
		memory: work.NewMemory(cfg.Memory), batches: batches, leading: lead.NewLeadership(),
		fleet: lead.NewFleet(time.Now())}
	counter := &counter{metadata: d.deps.Metadata, journals: d.deps.Journals, runs: with.runs,
		remaining: &work.Remaining{Store: d.deps.Metadata}}
	finisher := finish.NewFinisher(finish.FinisherParts{Metadata: d.deps.Metadata,
		Owner: with.owner,
		Inbox: inbox, Tasks: tasks, Batches: batches, Lose: lose, Log: with.log})
	recorder := finish.NewRecorder(finish.RecorderParts{Memory: with.memory, Inbox: inbox,
		Finisher: finisher,
		Metrics:  d.metrics, Lose: lose, Log: with.log})
	claimer := claim.New(claim.Parts{LeaseTTL: cfg.LeaseTTL, Metadata: d.deps.Metadata,
		Blobs:    d.deps.Blobs,
		Journals: d.deps.Journals, Leading: with.leading,
		Recorder: recorder, Finisher: finisher, Counter: counter, Stopper: stopper,
		Batches: with.batches, Owner: with.owner, Log: with.log, Inbox: inbox,
		Runs: with.runs, Tasks: with.tasks, Memory: with.memory})
	rooms := send.NewRooms(d.deps.Spool, inbox, with.runs, with.log)
	senders := send.New(send.Parts{Metrics: d.metrics, Recorder: recorder,
		Memory: &with.memory.Answers, Inbox: inbox, Log: with.log, Rooms: rooms,
		Runner: func(planned string) (*upstream.Runner, time.Duration) {
			now := d.settings.Load()
			return now.runner(planned), now.RequestTimeout
		}})
	learning := &learning{store: d.deps.Metadata, owner: with.owner, every: cfg.LearnedEvery,
		timeout: cfg.LeaseTTL / 3, tasks: with.tasks, log: with.log}
	progress := d.newProgress(with)
	return &session{
		settings: d.settings.Load, inbox: inbox,
		settling: settleLimit(d.deps.Journals.Durability()), log: with.log, lose: lose,
		runs: with.runs, tasks: with.tasks, ready: d.ready.Store, misplaced: d.deps.Misplaced,
		leading: with.leading, fleet: with.fleet,
		lease: lead.NewLease(lead.LeaseParts{Registration: registered, Store: d.deps.Metadata,
			Leading: with.leading,
			Fleet:   with.fleet, Inbox: inbox, Runs: with.runs, Counts: counter, Claims: claimer,
			States: learning, Lose: lose, Limits: func() (map[string]string, int) {
				now := d.settings.Load()
				return now.Registry.ByModel(), now.MaxModels
			}}),
		reconciler: d.newReconciler(with, stopper, counter.remaining, claimer, finisher),
		claimer:    claimer, finisher: finisher, rooms: rooms, senders: senders,
		progress: progress,
		loop: &loop{planner: planner, inbox: inbox, memory: with.memory, watcher: d.deps.Watcher,
			failures: progress.failures, decisions: decision.NewRecorder(d.decisions, planner),
			registration: registered, senders: senders, claimer: claimer, recorder: recorder,
			batches: with.batches, publishers: []publisher{progress, learning},
			publishEvery: cfg.ProgressEvery, chunks: map[chunkKey]*work.Chunk{},
			flights: map[flightKey]*work.Flight{}, done: make(chan struct{})},
		sweeper: &finish.Sweeper{Batches: d.deps.Metadata, Journals: d.deps.Journals,
			Expiry: d.deps.Expiry, Log: with.log},
		follower: lead.NewFollower(lead.FollowerParts{Done: d.deps.Metadata, Board: d.deps.Progress,
			Leading: with.leading, Runs: with.runs, Remaining: counter.remaining,
			Inbox: inbox, Log: with.log}),
	}, nil
}

func (d *Dispatcher) newReconciler(
	with shared, stopper *stopper, remaining *work.Remaining, claimer *claim.Claimer,
	finisher *finish.Finisher,
) *reconciler {
	return &reconciler{
		stopper: stopper, inbox: with.inbox, claimer: claimer, finisher: finisher,
		fleet:  with.fleet,
		expiry: d.deps.Expiry, pollWait: d.pollWait, retryWait: with.cfg.PollEvery,
		wake: make(chan struct{}, 1), remaining: remaining, catalog: d.catalog,
		owner: with.owner, runs: with.runs, shown: d.shown, metrics: d.metrics,
		cancelGrace: func() time.Duration { return d.settings.Load().CancelGrace },
		admitter: &claim.Admitter{
			Metadata: d.deps.Metadata, Blobs: d.deps.Blobs, Runs: with.runs, Log: with.log,
			ChunkLines: with.cfg.ChunkLines, ChunkBytes: with.cfg.ChunkBytes,
		},
		finalizer: &finish.Finalizer{
			Metadata: d.deps.Metadata, Blobs: d.deps.Blobs, Journals: d.deps.Journals,
			Owner: with.owner, Log: with.log, Metrics: d.metrics, Batches: with.batches,
		},
	}
}

func (d *Dispatcher) newProgress(with shared) *progress {
	p := &progress{
		store: d.deps.Progress, timeout: with.cfg.LeaseTTL, metrics: d.metrics,
		leading: with.leading, owner: with.owner, log: with.log, runs: with.runs,
		tasks: with.tasks, catalog: d.catalog, takeovers: takeovers{}, onPools: d.deps.OnPools,
		forecasts: &d.forecasts, onPosted: d.deps.OnPosted,
		failures: &runnerFailures{runners: map[string]*[recentMinutes]minuteFailures{}},
		posted:   progressPosts{byRun: map[*work.Run]store.ProgressPost{}},
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
