package dispatch

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// progress publishes the state of pools and batches: in metrics, for the API of this process, and
// in the store.
type progress struct {
	store   ProgressBoard
	owner   store.Owner
	timeout time.Duration // of one post
	leading *leadership
	runs    *runs
	tasks   *tasks
	metrics *metrics
	log     *slog.Logger

	pools   atomic.Pointer[[]plan.PoolStatus] // as last published
	posting atomic.Bool                       // a post is being written
	failing atomic.Bool                       // the last post failed

	catalog   *catalog
	forecasts *forecasts
	onPools   func(now time.Time, pools []plan.PoolStatus) // nil: nobody
	onPosted  func(batches []string)                       // nil: nobody
	away      func() string                                // as Deps.Away
	// againEvery is how often posts are repeated that have not changed; 0: never
	againEvery time.Duration
	// writeEvery is the least time between two posts to the store
	writeEvery time.Duration

	// Owned by the loop.
	warnings    poolWarnings
	silent      silentRunners
	failures    *runnerFailures
	unranked    rankFaults
	takeovers   takeovers
	terms       [][]flowcontrol.Term // as explained at explainedAt, in the order of pools
	explainedAt time.Time
	againAt     time.Time // when all posts are repeated next
	writeAt     time.Time // when something is posted next
}

// forgetful is a board that loses posts which are not repeated.
type forgetful interface {
	// PostAgainEvery returns how often posts are to be repeated.
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
	p.warn(pools)
	if p.onPools != nil {
		p.onPools(now, pools)
	}
	p.pools.Store(&pools)
	if now.Sub(p.explainedAt) >= explainEvery || len(p.terms) != len(pools) {
		p.terms, p.explainedAt = planner.Terms(now), now
	}
	p.metrics.status.setPools(pools, p.terms)
	p.warnings.log(p.log, pools)
	p.silent.log(p.log, now, pools)
	p.failures.publish(now, pools)
	p.takeovers.log(p.log, pools)
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
	p.runs.each(func(r *run) {
		status, known := planner.Status(now, r.id)
		said := reported{why: whyWaiting(status, noRunner),
			unranked: p.unranked.note(p.log, r, status), leads: p.leading.leadsAny(r),
			forecast: p.forecasts.of(r.id), again: again, away: away}
		batches.add(r, now, said.forecast.Verdict)
		if post, ok := r.progress(now, status, known, said); ok {
			changed = append(changed, post)
		}
	})
	p.metrics.unranked.Set(float64(p.unranked.count))
	p.metrics.status.setBatches(batches, len(p.leading.names()))
	if p.leading.standsBy() { // then the leader posts, except what only this process knows
		changed = slices.DeleteFunc(changed, func(c changedProgress) bool { return !c.own })
	}
	if len(changed) == 0 {
		p.posting.Store(false)
		return
	}
	p.tasks.start(func(ctx context.Context) {
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
		posts[c.run.id] = c.post
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
	defer cancel()
	err := p.store.PostProgress(ctx, p.owner, posts)
	if failed := err != nil && !isFenced(err); p.failing.Swap(failed) != failed && failed {
		p.log.Warn("could not post progress, trying again", "error", err)
	}
	if err != nil {
		for _, c := range changed {
			c.run.postAgain()
		}
		return
	}
	if p.onPosted != nil {
		p.onPosted(slices.Collect(maps.Keys(posts)))
	}
}

// changedProgress is the progress of a run that differs from what was posted last.
type changedProgress struct {
	run  *run
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
	again    bool           // it is posted even if nothing has changed
	away     string         // the part of the store that is away, as a sentence; empty: none
}

// progress returns the run's progress, and whether it differs from what was posted last.
func (r *run) progress(
	now time.Time, status plan.BatchStatus, known bool, of reported,
) (changedProgress, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batch.State.Terminal() {
		return changedProgress{}, false
	}
	chunks := r.chunkProgress()
	p := store.Progress{
		InFlight: status.InFlight, Retrying: status.Retrying,
		Attempts: r.attempts.Load(), LinesPerSecond: r.speed.perSecond(now),
		Waiting: of.why, Unranked: of.unranked, Forecast: of.forecast, Leads: of.leads,
	}
	for _, c := range chunks {
		p.Completed += c.Completed
		p.Failed += c.Failed
	}
	p.Failures = r.failures.Top()
	if !known { // it starts no more lines
		p.Waiting, p.LinesPerSecond = "", 0
		for _, c := range r.chunks {
			p.InFlight += c.inFlight
		}
	}
	// also of a batch that starts no more lines and can't be brought to its end
	switch {
	case r.blocked != plan.Flowing:
		p.Waiting = r.blocked.Text()
	case len(r.unsaved) > 0:
		p.Waiting = plan.DiskFull.Text()
	}
	if of.away != "" && p.Waiting == plan.StoreDown.Text() {
		p.Waiting = plan.StoreDown.Because(of.away)
	}
	if !of.again && p == r.lastPost.Progress && slices.Equal(chunks, r.lastPost.Chunks) {
		return changedProgress{}, false
	}
	own := r.lastPost.Leads && !of.leads || r.lastPost.Forecast != of.forecast
	r.lastPost = store.ProgressPost{Progress: p, Chunks: chunks}
	p.UpdatedAt = now
	return changedProgress{run: r, post: store.ProgressPost{Progress: p, Chunks: chunks},
		own: own}, true
}

// chunkProgress counts the durable results of the held chunks, and of those that were given back
// unfinished, by index. r.mu is held.
func (r *run) chunkProgress() []store.ChunkProgress {
	var chunks []store.ChunkProgress
	add := func(c store.Chunk, t store.Tally) {
		if t.Completed+t.Failed > 0 {
			chunks = append(chunks, store.ChunkProgress{Index: c.Index, Epoch: c.Epoch,
				Completed: t.Completed, Failed: t.Failed})
		}
	}
	for _, c := range r.chunks {
		add(c.Chunk, c.tally)
	}
	for _, c := range r.givenBack {
		add(c, c.Tally)
	}
	slices.SortFunc(chunks, func(a, b store.ChunkProgress) int { return a.Index - b.Index })
	return chunks
}

// postAgain has the run's progress posted again, since a post failed.
func (r *run) postAgain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastPost = store.ProgressPost{Progress: store.Progress{Attempts: -1}} // differs from any
}

// speed measures durable results per second: over 3 seconds or, if results are rare, over as long
// as it takes to see some.
type speed struct {
	since time.Time
	count int
	last  float64 // of the last window that has ended; 0: none, or nothing came
}

const (
	shortWindow, longWindow = 3 * time.Second, time.Minute
	// enoughResults end a window.
	enoughResults = 10
	// firstWindow is how long the first window takes at least before it shows anything.
	firstWindow = 500 * time.Millisecond
)

func (s *speed) add(n int) { s.count += n }

func (s *speed) perSecond(now time.Time) float64 {
	if s.since.IsZero() {
		if s.count > 0 { // the time before the first result says nothing
			s.since, s.count = now, 0
		}
		return 0
	}
	elapsed := now.Sub(s.since)
	switch {
	case elapsed >= shortWindow && (s.count >= enoughResults || elapsed >= longWindow):
		s.last = float64(s.count) / elapsed.Seconds()
		s.since, s.count = now, 0
	case s.last == 0 && elapsed >= firstWindow:
		return float64(s.count) / elapsed.Seconds()
	case elapsed >= shortWindow: // fewer come than before
		return min(s.last, float64(s.count+1)/elapsed.Seconds())
	}
	return s.last
}
