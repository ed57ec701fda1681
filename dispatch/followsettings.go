package dispatch

import (
	"context"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// followSettings applies the settings, and all that replace them, until ctx is done: it configures
// the planner and the leadership, and asks each runner for its models.
func (s *session) followSettings(ctx context.Context) {
	var watchers sync.WaitGroup
	defer watchers.Wait()
	watched := map[*upstream.Runner]context.CancelFunc{}
	for {
		now := s.settings()
		for _, event := range s.fleet.Configure(now.runners) {
			s.Inbox.Event(event)
		}
		s.Inbox.Event(plan.Reconfigure{Config: now.PlanConfig(), Scheduler: now.Scheduler,
			Flow: now.Registry.FlowControl(), Pools: now.Registry.Names()})
		for u, stop := range watched {
			if now.runners[u.Name] != u {
				stop()
				delete(watched, u)
			}
		}
		for _, u := range now.runners {
			if watched[u] == nil {
				watching, stop := context.WithCancel(ctx)
				watched[u] = stop
				watchers.Go(func() { u.WatchModels(watching, s.Log, s.modelsFound) })
			}
		}
		s.reconcileUnserved()
		s.reconcilePlaced()
		select {
		case <-ctx.Done():
			return
		case <-now.replaced:
		}
	}
}

// reconcilePlaced has the batches looked at again that may not use all pools: others may be there.
func (s *session) reconcilePlaced() {
	s.Runs.Each(func(r *work.Run) {
		if b := r.Batch(); b.Resolved != nil {
			s.Batches.Add(r.ID)
		}
	})
}

// modelsFound takes what a runner answered when it was asked for its models.
func (s *session) modelsFound(u *upstream.Runner, list upstream.List) {
	s.fleet.Served(u, list)
	if list.First && s.reconciler.catalog.complete() {
		s.reconcileUnserved()
	}
}

// reconcileUnserved has the batches looked at again of which a model has no runner: nothing may be
// expected to serve it any more. Runners come and go often, and most batches have theirs.
func (s *session) reconcileUnserved() {
	served := s.reconciler.catalog.served()
	s.Runs.Each(func(r *work.Run) {
		if slices.ContainsFunc(r.Models(), func(m store.ModelLines) bool {
			_, found := slices.BinarySearch(served, m.Model)
			return !found
		}) {
			s.Batches.Add(r.ID)
		}
	})
}
