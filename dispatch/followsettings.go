package dispatch

import (
	"context"
	"sync"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// followSettings applies the settings, and all that replace them, until ctx is done: it configures
// the planner and the leadership, and asks each runner for its models.
func (s *session) followSettings(ctx context.Context) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	watched := map[*runner]context.CancelFunc{}
	for {
		now := s.settings()
		for _, event := range s.lease.leading.configure(now.runners) {
			s.lease.notify(event)
		}
		s.lease.notify(plan.Reconfigure{Config: now.PlanConfig(), Scheduler: now.Scheduler,
			Flow: now.Flow})
		for u, stop := range watched {
			if now.runners[u.name] != u {
				stop()
				delete(watched, u)
			}
		}
		for _, u := range now.runners {
			if watched[u] == nil {
				watching, stop := context.WithCancel(ctx)
				watched[u] = stop
				watchers.Go(func() { u.watchModels(watching, now.Config, s.log, s.modelsFound) })
			}
		}
		s.reconcileAll() // a model may be served by no runner any more, or by one
		select {
		case <-ctx.Done():
			return
		case <-now.replaced:
		}
	}
}

// reconcileAll has all batches looked at again.
func (s *session) reconcileAll() {
	s.runs.each(func(r *run) { s.reconciler.enqueue(r.id) })
}
