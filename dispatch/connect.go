package dispatch

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/dispatch/claim"
	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/finish"
	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/send"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// newSession registers with the store and constructs the parts, each after those that it needs.
// What needs a part that comes later sends a message to the loop, or adds to a queue. lose ends the
// session.
func (d *Dispatcher) newSession(
	ctx context.Context, lose context.CancelCauseFunc,
) (*session, error) {
	cfg, metadata := d.settings.Load().Config, d.deps.Metadata
	planner, err := d.newPlanner()
	if err != nil {
		return nil, err
	}
	registered, err := lead.Register(ctx, metadata, d.deps.Node, cfg.LeaseTTL)
	if err != nil {
		return nil, err
	}
	with := &work.Session{Owner: registered.Owner, Log: d.log.With("node", registered.Owner.Node),
		Inbox: work.NewInbox(), Tasks: work.NewTasks(ctx, openai.ErrEvicted),
		Memory: work.NewMemory(cfg.Memory), Batches: work.NewQueue[string](), Lose: lose,
		Tracer: d.deps.Tracer}
	stopper := &stopper{Session: with, metadata: metadata}
	with.Runs = work.NewRuns(with.Tasks, with.Inbox, stopper,
		func() *registry.Snapshot { return d.settings.Load().Registry })
	leading, fleet := lead.NewLeadership(), lead.NewFleet(time.Now())
	counter := &counter{metadata: metadata, journals: d.deps.Journals, runs: with.Runs,
		remaining: &work.Remaining{Store: metadata}}
	finisher := finish.NewFinisher(with, metadata)
	recorder := finish.NewRecorder(with, finisher, d.metrics)
	claimer := claim.New(with, claim.Parts{LeaseTTL: cfg.LeaseTTL, Metadata: metadata,
		Blobs: d.deps.Blobs, Journals: d.deps.Journals, Leading: leading, Recorder: recorder,
		Finisher: finisher, Counter: counter, Stopper: stopper})
	rooms := send.NewRooms(with, d.deps.Spool)
	senders := send.New(with, send.Parts{Recorder: recorder, Rooms: rooms, Metrics: d.metrics,
		Runner: func(planned string) (*upstream.Runner, time.Duration) {
			now := d.settings.Load()
			return now.runner(planned), now.RequestTimeout
		}})
	learning := &learning{Session: with, store: metadata, every: cfg.LearnedEvery,
		timeout: cfg.LeaseTTL / 3}
	history := &poolHistory{Session: with, store: metadata, every: cfg.LearnedEvery,
		timeout: cfg.LeaseTTL / 3, expiry: d.deps.Expiry,
		counted: map[poolHour]*store.PoolHour{}, turn: make(chan struct{}, 1)}
	progress, requests := d.newProgress(with, leading, cfg.LeaseTTL), newRequests()
	return &session{
		Session: with, settings: d.settings.Load, ready: d.ready.Store,
		settling: settleLimit(d.deps.Journals.Durability()), misplaced: d.deps.Misplaced,
		leading: leading, fleet: fleet,
		lease: lead.NewLease(with, lead.LeaseParts{Registration: registered, Store: metadata,
			Leading: leading, Fleet: fleet, Counts: counter, Claims: claimer, States: learning,
			Limits: func() (map[string]string, int) {
				now := d.settings.Load()
				return now.Registry.ByModel(), maxModels
			}}),
		reconciler: &reconciler{
			stopper: stopper, claimer: claimer, finisher: finisher, fleet: fleet,
			expiry: d.deps.Expiry, pollWait: d.pollWait, retryWait: cfg.PollEvery,
			wake: make(chan struct{}, 1), remaining: counter.remaining, catalog: d.catalog,
			shown: d.shown, metrics: d.metrics, targets: d.targets,
			cancelGrace: func() time.Duration { return d.settings.Load().CancelGrace },
			admitter: &claim.Admitter{Session: with, Metadata: metadata, Blobs: d.deps.Blobs,
				ChunkLines: cfg.ChunkLines, ChunkBytes: chunkBytes},
			finalizer: &finish.Finalizer{Session: with, Metadata: metadata, Blobs: d.deps.Blobs,
				Places: d.deps.Places, Buckets: d.deps.Buckets, Journals: d.deps.Journals,
				Metrics: d.metrics, Expiry: d.deps.Expiry, RefusedFor: cfg.RefusedFor},
		},
		claimer: claimer, finisher: finisher, rooms: rooms, senders: senders, progress: progress,
		requests: requests, history: history,
		loop: &loop{
			Session: with, planner: planner, watcher: d.deps.Watcher, failures: progress.failures,
			decisions:    decision.NewRecorder(d.decisions, planner),
			registration: registered, senders: senders, claimer: claimer, recorder: recorder,
			publishers: []publisher{progress, learning, history}, publishEvery: cfg.ProgressEvery,
			requests: requests,
			chunks:   map[chunkKey]*work.Chunk{}, flights: map[flightKey]*work.Flight{},
			done: make(chan struct{}),
		},
		sweeper: &finish.Sweeper{Batches: metadata, Journals: d.deps.Journals,
			Expiry: d.deps.Expiry, Log: with.Log},
		follower: lead.NewFollower(with, metadata, d.deps.Progress, leading, counter.remaining),
	}, nil
}

func (d *Dispatcher) newProgress(
	with *work.Session, leading *lead.Leadership, timeout time.Duration,
) *progress {
	p := &progress{
		Session: with, store: d.deps.Progress, timeout: timeout, metrics: d.metrics,
		leading: leading, catalog: d.catalog, takeovers: takeovers{}, onPools: d.deps.OnPools,
		forecasts: &d.forecasts, onPosted: d.deps.OnPosted, away: d.deps.Away,
		failures: &runnerFailures{runners: map[string]*[recentMinutes]minuteFailures{}},
		posted:   progressPosts{byRun: map[*work.Run]store.ProgressPost{}},
	}
	if board, forgets := d.deps.Progress.(forgetful); forgets {
		p.againEvery = board.PostAgainEvery()
	}
	if board, slow := d.deps.Progress.(unhurried); slow {
		p.writeEvery = board.PostEvery()
	}
	return p
}
