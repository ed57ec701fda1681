package dispatch

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// progress publishes the state of pools and batches: in metrics, for the API of this process, and in
// the store.
type progress struct {
	store   Progress
	owner   store.Owner
	timeout time.Duration // of one post
	leading *leadership
	runs    *runs
	tasks   *tasks
	metrics *metrics
	log     *slog.Logger

	pools   atomic.Pointer[[]plan.PoolStatus] // as last published
	posting atomic.Bool                       // a post is under way
	failing atomic.Bool                       // the last post failed
}

// post publishes the state of pools and batches. The loop calls it, since only the loop may read the
// planner. Another goroutine writes to the store, one post at a time.
func (p *progress) post(now time.Time, planner *plan.Planner) {
	pools := planner.Pools()
	p.pools.Store(&pools)
	p.metrics.pools(pools)
	if !p.posting.CompareAndSwap(false, true) {
		return // the store is slow; the next post covers this one
	}
	var changed []changedProgress
	states := map[string]int{}
	p.runs.each(func(r *run) {
		states[r.state()]++
		status, known := planner.Status(now, r.id)
		if post, ok := r.progress(now, status, known, p.leading.leadsAny(r)); ok {
			changed = append(changed, post)
		}
	})
	p.metrics.batches(states)
	p.metrics.leads.Set(float64(len(p.leading.names())))
	if len(changed) == 0 || p.leading.standsBy() { // then the leader posts
		p.posting.Store(false)
		return
	}
	p.tasks.start(func(ctx context.Context) {
		defer p.posting.Store(false)
		p.write(ctx, changed)
	})
}

// write posts progress to the store. It counts once more under the posting lock of each run, so that
// the counts agree with the chunks that the store knows to be done.
func (p *progress) write(ctx context.Context, changed []changedProgress) {
	posts := make(map[string]store.Progress, len(changed))
	counted := map[*chunk]store.Tally{}
	for _, c := range changed {
		c.run.posting.Lock()
		defer c.run.posting.Unlock()
		posts[c.run.id] = c.run.recount(c.progress, counted)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
	defer cancel()
	err := p.store.PostProgress(ctx, p.owner, posts)
	if failed := err != nil && !isFenced(err); p.failing.Swap(failed) != failed && failed {
		p.log.Warn("could not post progress, trying again", "error", err)
	}
	for _, c := range changed {
		c.run.posted(counted, err == nil)
	}
}

// changedProgress is the progress of a run that differs from what was posted last.
type changedProgress struct {
	run      *run
	progress store.Progress
}

// progress returns the run's progress, and whether it differs from what was posted last.
func (r *run) progress(
	now time.Time, status plan.BatchStatus, known, leads bool,
) (changedProgress, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batch.State.Terminal() {
		return changedProgress{}, false
	}
	p := store.Progress{
		Completed: r.live.Completed, Failed: r.live.Failed,
		InFlight: status.InFlight, Retrying: status.Retrying,
		Attempts: r.attempts.Load(), LinesPerSecond: r.speed.perSecond(now),
		Waiting: string(status.Waiting),
		Leads:   leads,
	}
	if !known {
		p.Waiting, p.LinesPerSecond = "", 0
	}
	// also of a batch that starts no more lines and can't be brought to its end
	if r.blocked != plan.Flowing {
		p.Waiting = string(r.blocked)
	}
	if p == r.lastPost {
		return changedProgress{}, false
	}
	r.lastPost = p
	p.UpdatedAt = now
	return changedProgress{run: r, progress: p}, true
}

// state returns the run's state as metrics show it.
func (r *run) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batch.Paused && r.batch.State == store.InProgress {
		return "paused"
	}
	return string(r.batch.State)
}

// recount brings the counts of p up to date, and adds to counted the tally of each chunk in them.
func (r *run) recount(p store.Progress, counted map[*chunk]store.Tally) store.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Completed, p.Failed = r.live.Completed, r.live.Failed
	r.lastPost.Completed, r.lastPost.Failed = p.Completed, p.Failed
	for _, c := range r.chunks {
		counted[c] = c.tally
	}
	return p
}

// posted notes what the store knows of the run's chunks after a post, or that the post failed.
func (r *run) posted(counted map[*chunk]store.Tally, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		r.lastPost = store.Progress{Attempts: -1} // differs from any
		return
	}
	for _, c := range r.chunks {
		c.posted = counted[c]
	}
}

// speed measures durable results per second.
type speed struct {
	since time.Time
	count int
	last  float64
}

func (s *speed) add(n int) { s.count += n }

func (s *speed) perSecond(now time.Time) float64 {
	const window = 3 * time.Second
	if s.since.IsZero() {
		s.since = now
		return 0
	}
	elapsed := now.Sub(s.since)
	if elapsed < window && (s.last > 0 || elapsed < 500*time.Millisecond) {
		return s.last
	}
	s.last = float64(s.count) / elapsed.Seconds()
	s.since, s.count = now, 0
	return s.last
}
