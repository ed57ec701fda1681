package dispatch

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// postProgress tells the store how the runs stand. The loop looks at the planner; the writing is
// done beside it, one at a time.
func (s *session) postProgress(planner *plan.Planner) {
	pools := planner.Pools()
	s.pools.Store(&pools)
	s.metrics.pools(pools)
	if !s.writing.CompareAndSwap(false, true) {
		return // the store is slow; the next post says it all
	}
	now := time.Now()
	var changed []progressPost
	states := map[string]int{}
	s.mu.Lock()
	for id, r := range s.runs {
		states[r.state()]++
		status, known := planner.Status(now, id)
		if post, ok := r.progress(now, status, known, s.leadsAnyOf(r)); ok {
			changed = append(changed, post)
		}
	}
	s.mu.Unlock()
	s.metrics.batches(states)
	s.metrics.leads.Set(float64(len(s.lease.leading.names())))
	if len(changed) == 0 || s.lease.leading.standsBy() { // then the leader posts
		s.writing.Store(false)
		return
	}
	s.background.Go(func() {
		defer s.writing.Store(false)
		s.write(changed)
	})
}

type progressPost struct {
	run      *run
	progress store.Progress
}

// progress is the run's state for show, and whether it differs from what was posted.
func (r *run) progress(
	now time.Time, status plan.BatchStatus, known, leads bool,
) (progressPost, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batch.State.Terminal() {
		return progressPost{}, false
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
	// also of a batch that starts no more lines, but can't be brought to its end
	if r.trouble != plan.Flowing {
		p.Waiting = string(r.trouble)
	}
	if p == r.posted {
		return progressPost{}, false
	}
	r.posted = p
	p.UpdatedAt = now
	return progressPost{run: r, progress: p}, true
}

// state is the run's state as metrics show it.
func (r *run) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.batch.Paused && r.batch.State == store.InProgress {
		return "paused"
	}
	return string(r.batch.State)
}

// write posts progress. The counts are taken once more under each run's posting lock, so that they
// agree with the chunks that the store knows to be done.
func (s *session) write(changed []progressPost) {
	posts := make(map[string]store.Progress, len(changed))
	counted := map[*chunk]store.Tally{}
	for _, c := range changed {
		c.run.posting.Lock()
		defer c.run.posting.Unlock()
		posts[c.run.id] = c.run.count(c.progress, counted)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.cfg.LeaseTTL)
	defer cancel()
	err := s.deps.Progress.PostProgress(ctx, s.lease.owner, posts)
	if failed := err != nil && !isFenced(err); s.mute.Swap(failed) != failed && failed {
		s.log.Warn("could not post progress, trying again", "error", err)
	}
	for _, c := range changed {
		c.run.wasPosted(counted, err == nil)
	}
}

// count brings the counts of p up to date, and notes what it counted of which chunk.
func (r *run) count(p store.Progress, counted map[*chunk]store.Tally) store.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.Completed, p.Failed = r.live.Completed, r.live.Failed
	r.posted.Completed, r.posted.Failed = p.Completed, p.Failed
	for _, c := range r.chunks {
		counted[c] = c.tally
	}
	return p
}

// wasPosted notes what the store now knows of the run's chunks, or that it is to be told again.
func (r *run) wasPosted(counted map[*chunk]store.Tally, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		r.posted = store.Progress{Attempts: -1} // like none
		return
	}
	for _, c := range r.chunks {
		c.posted = counted[c]
	}
}
