package dispatch

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// progress publishes the state of pools and batches: in metrics, for the API of this process, and
// in the store.
type progress struct {
	*work.Session
	store   ProgressBoard
	timeout time.Duration // of one post
	leading *lead.Leadership
	metrics *metrics

	posted  progressPosts
	pools   atomic.Pointer[[]plan.PoolStatus] // as last published
	posting atomic.Bool                       // a post is being written
	failing atomic.Bool                       // the last post failed

	catalog   *catalog
	forecasts *forecasts
	onPools   func(now time.Time, pools []plan.PoolStatus) // nil: nobody
	onPosted  func(batches []string)                       // nil: nobody
	away      func() string                                // as Deps.Away
	// againEvery is the time after which unchanged posts are repeated; 0: never
	againEvery time.Duration
	// writeEvery is the least time between two posts to the store
	writeEvery time.Duration

	// Owned by the loop.
	warnings    poolWarnings
	silent      silentRunners
	failures    *runnerFailures
	unranked    rankFaults
	stalls      stalls
	takeovers   takeovers
	terms       [][]flowcontrol.Term // as explained at explainedAt, in the order of pools
	explainedAt time.Time
	againAt     time.Time // when all posts are repeated next
	writeAt     time.Time // when something is posted next
}

// forgetful is a board that loses posts which are not repeated.
type forgetful interface {
	// PostAgainEvery returns the interval at which posts are to be repeated.
	PostAgainEvery() time.Duration
}

// unhurried is a board on which each post costs a server something.
type unhurried interface {
	// PostEvery returns the least time between two posts.
	PostEvery() time.Duration
}

// explainEvery is the interval at which allowances are explained for metrics. It is longer than
// that of progress, because an explanation computes more.
const explainEvery = time.Second

// post publishes the state of pools and batches. The loop calls it, since only the loop may read
// the planner. Another goroutine writes to the store, one post at a time.
func (p *progress) post(now time.Time, planner *plan.Planner) {
	pools := planner.Pools()
	for i, warnings := range planner.Warnings(now) {
		pools[i].Warnings = warnings
	}
	for i, allowance := range planner.Shadows(now) {
		pools[i].Shadow = allowance
	}
	for i, requests := range planner.Requests(now) {
		pools[i].Requests = requests
	}
	for i, fallback := range planner.Fallbacks(now) {
		pools[i].Fallback = fallback
	}
	p.warn(pools)
	if p.onPools != nil {
		p.onPools(now, pools)
	}
	p.pools.Store(&pools)
	if now.Sub(p.explainedAt) >= explainEvery || len(p.terms) != len(pools) {
		p.terms, p.explainedAt = planner.Terms(now), now
	}
	p.metrics.status.setPools(pools, p.terms)
	p.warnings.log(p.Log, pools)
	p.silent.log(p.Log, now, pools)
	p.failures.publish(now, pools)
	p.takeovers.log(p.Log, pools)
	if now.Before(p.writeAt) || !p.posting.CompareAndSwap(false, true) {
		return // the next post covers this one
	}
	p.writeAt = now.Add(p.writeEvery)
	var changed []changedProgress
	batches, noRunner := batchCounts{}, p.catalog.waiting()
	p.unranked.count = 0
	away := p.away()
	again := p.againEvery > 0 && !now.Before(p.againAt)
	if again {
		p.againAt = now.Add(p.againEvery)
	}
	p.stalls.begin()
	p.Runs.Each(func(r *work.Run) {
		status, known := planner.Status(now, r.ID)
		is := r.State(now)
		forecast := p.stalls.doubt(now, &is, status, known, p.forecasts.of(r.ID))
		said := reported{why: whyWaiting(&is.Batch, status, noRunner, forecast.Verdict),
			unranked: p.unranked.note(p.Log, r, status), leads: p.leading.LeadsAny(is.Batch.Models),
			forecast: forecast, away: away}
		batches.add(&is, now, said.forecast.Verdict)
		if is.Batch.State.Terminal() {
			return
		}
		post := progressOf(&is, status, known, said)
		if own, differs := p.posted.differs(r, post, again); differs {
			post.UpdatedAt = now
			changed = append(changed, changedProgress{run: r, post: post, own: own})
		}
	})
	p.stalls.end()
	p.posted.prune(p.Runs)
	p.metrics.unranked.Set(float64(p.unranked.count))
	p.metrics.status.setBatches(batches, len(p.leading.Names()))
	if p.leading.StandsBy() { // then the leader posts, except what only this process knows
		changed = slices.DeleteFunc(changed, func(c changedProgress) bool { return !c.own })
	}
	if len(changed) == 0 {
		p.posting.Store(false)
		return
	}
	p.Tasks.Start(func(ctx context.Context) {
		defer p.posting.Store(false)
		p.write(ctx, changed)
	})
}

// end implements [publisher]. It has all further posts written at once, since the last ones come.
func (p *progress) end(time.Time, *plan.Planner) { p.writeEvery, p.writeAt = 0, time.Time{} }

// write posts progress to the store.
func (p *progress) write(ctx context.Context, changed []changedProgress) {
	posts := make(map[string]store.ProgressPost, len(changed))
	for _, c := range changed {
		posts[c.run.ID] = c.post
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
	defer cancel()
	err := p.store.PostProgress(ctx, p.Owner, posts)
	failed := err != nil && !errors.Is(err, store.ErrFenced)
	if p.failing.Swap(failed) != failed && failed {
		p.Log.Warn("could not post progress, trying again", "error", err)
	}
	if err != nil {
		for _, c := range changed {
			p.posted.again(c.run)
		}
		return
	}
	if p.onPosted != nil {
		p.onPosted(slices.Collect(maps.Keys(posts)))
	}
}

// changedProgress is the progress of a run that differs from what was posted last.
type changedProgress struct {
	run  *work.Run
	post store.ProgressPost
	// own says that no other process posts what has changed: this one led a model of the batch and
	// leads none now, or has another forecast
	own bool
}

// reported is what the parts of the dispatcher say about a run.
type reported struct {
	leads    bool           // this process leads a model of the batch
	why      string         // no more lines start
	unranked string         // why the ordering policy can't rank the batch
	forecast store.Forecast // zero: none
	away     string         // the part of the store that is away, as a sentence; empty: none
}

// progressPosts holds what was posted last of each run. It is safe for concurrent use.
type progressPosts struct {
	mu    sync.Mutex
	byRun map[*work.Run]store.ProgressPost
}

// prune forgets runs that are gone.
func (ps *progressPosts) prune(runs *work.Runs) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if len(ps.byRun) > runs.Len() {
		maps.DeleteFunc(ps.byRun, func(r *work.Run, _ store.ProgressPost) bool {
			return runs.Get(r.ID) != r
		})
	}
}

// again has the progress of a run posted again, since a post failed.
func (ps *progressPosts) again(r *work.Run) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.byRun[r] = store.ProgressPost{Progress: store.Progress{Attempts: -1}} // differs from any
}

// differs reports whether the progress of a run differs from what was posted last, which it
// replaces. own: no other process posts what has changed. again: it is posted even if it is equal.
func (ps *progressPosts) differs(
	r *work.Run, p store.ProgressPost, again bool,
) (own, differs bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	last := ps.byRun[r]
	if !again && p.Progress == last.Progress && slices.Equal(p.Chunks, last.Chunks) {
		return false, false
	}
	ps.byRun[r] = p
	return last.Leads && !p.Leads || last.Forecast != p.Forecast, true
}

// progressOf returns the progress of a run that has not ended.
func progressOf(
	r *work.State, status plan.BatchStatus, known bool, of reported,
) store.ProgressPost {
	p := store.Progress{
		InFlight: status.InFlight, Retrying: status.Retrying,
		Attempts: r.Attempts, LinesPerSecond: r.LinesPerSecond,
		Waiting: of.why, Unranked: of.unranked, Forecast: of.forecast, Leads: of.leads,
		Failures: r.Failures,
	}
	for _, c := range r.Chunks {
		p.Completed += c.Completed
		p.Failed += c.Failed
	}
	if !known { // it starts no more lines
		p.Waiting, p.LinesPerSecond = "", 0
		p.InFlight += r.InFlight
	}
	// also of a batch that starts no more lines and can't be brought to its end
	if r.Blocked != plan.Flowing {
		p.Waiting = r.Blocked.Text()
	}
	if r.Blocked == plan.StorageAway {
		p.Waiting = plan.StorageAway.Because(r.Storage)
	}
	if of.away != "" && p.Waiting == plan.StoreDown.Text() {
		p.Waiting = plan.StoreDown.Because(of.away)
	}
	return store.ProgressPost{Progress: p, Chunks: r.Chunks}
}

// warn adds the warnings of streams to those of the pools.
func (p *progress) warn(pools []plan.PoolStatus) {
	now := p.catalog.settings()
	for i := range pools {
		warned := map[*upstream.Runner]bool{}
		for _, r := range pools[i].Runners {
			u := now.runner(r.ID)
			if u == nil || warned[u] {
				continue
			}
			warned[u] = true
			if w, ok := u.Streams.Warning(u.Name); ok {
				pools[i].Warnings = append(pools[i].Warnings, w)
			}
		}
	}
}
