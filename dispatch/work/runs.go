package work

import (
	"context"
	"sync"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// Runs holds the batches that this process works on, by id. It is safe for concurrent use.
type Runs struct {
	tasks  *Tasks // with which the requests of all runs end
	inbox  *Inbox
	limits Stopper
	pools  func() *registry.Snapshot

	mu   sync.Mutex
	byID map[string]*Run
}

// NewRuns returns an empty set of runs, whose requests end with the context of the tasks. pools
// returns those that there are now.
func NewRuns(
	tasks *Tasks, inbox *Inbox, limits Stopper, pools func() *registry.Snapshot,
) *Runs {
	return &Runs{tasks: tasks, inbox: inbox, limits: limits, pools: pools, byID: map[string]*Run{}}
}

// Plan returns the planner's view of a batch, without the lines of its models.
func (rs *Runs) Plan(b *store.Batch) plan.Batch {
	return PlanBatch(b, rs.pools())
}

// Get returns the run of a batch; nil if there is none.
func (rs *Runs) Get(id string) *Run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.byID[id]
}

// Len returns the number of runs.
func (rs *Runs) Len() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.byID)
}

// Each calls fn for every run. No run is added or removed meanwhile.
func (rs *Runs) Each(fn func(r *Run)) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.byID {
		fn(r)
	}
}

// Remove removes the run of a batch.
func (rs *Runs) Remove(id string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.byID, id)
}

// Update finds or makes the run of a batch and gives it what was read of the batch.
func (rs *Runs) Update(b store.Batch) *Run {
	rs.mu.Lock()
	r := rs.byID[b.ID]
	again := r != nil && r.replacedBy(b)
	if again {
		r.Close()
	}
	if r == nil || again {
		r = rs.newRun(b)
		r.Again = again
		rs.byID[b.ID] = r
	}
	rs.mu.Unlock()
	r.read(b)
	return r
}

// newRun returns a run of the batch.
func (rs *Runs) newRun(b store.Batch) *Run {
	ctx, cancel := context.WithCancelCause(rs.tasks.Context)
	return &Run{ID: b.ID, Tenant: b.Tenant, Limited: hasLimits(&b.Options), batch: b,
		Context: ctx, cancel: cancel, evicted: rs.tasks.evicted, inbox: rs.inbox, limits: rs.limits,
		pools:          rs.pools,
		RequestTimeout: b.Options.RequestTimeout,
		wantsStart:     !b.StartBy.IsZero() && b.FirstSentAt.IsZero(),
		held:           newHeldChunks(), results: resultCounts{givenBack: map[int]store.Chunk{}}}
}

// HeldModels returns the models of which chunks are held.
func (rs *Runs) HeldModels() map[string]bool {
	held := map[string]bool{}
	rs.Each(func(r *Run) { r.heldModels(held) })
	return held
}

// Models returns the models of the batches whose lines may start.
func (rs *Runs) Models() map[string]bool {
	models := map[string]bool{}
	rs.Each(func(r *Run) {
		r.UnlessStopped(func(b *store.Batch) {
			for _, m := range b.Models {
				models[m.Model] = true
			}
		})
	})
	return models
}
