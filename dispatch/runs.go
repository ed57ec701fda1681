package dispatch

import (
	"context"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// runs holds the batches that this process works on, by id. It is safe for concurrent use.
type runs struct {
	ctx     context.Context // with which the requests of all runs end
	evicted error           // the cause with which a run's requests are canceled
	inbox   *inbox
	limits  limitStopper

	mu   sync.Mutex
	byID map[string]*run
}

// newRuns returns no runs. The requests of those that are made end with ctx, or are canceled with
// evicted as the cause.
func newRuns(ctx context.Context, evicted error, inbox *inbox, limits limitStopper) *runs {
	return &runs{ctx: ctx, evicted: evicted, inbox: inbox, limits: limits,
		byID: map[string]*run{}}
}

// get returns the run of a batch; nil if there is none.
func (rs *runs) get(id string) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.byID[id]
}

func (rs *runs) len() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.byID)
}

// each calls fn for every run. No run is added or removed meanwhile.
func (rs *runs) each(fn func(r *run)) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, r := range rs.byID {
		fn(r)
	}
}

func (rs *runs) remove(id string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.byID, id)
}

// update finds or makes the run of a batch and gives it what was read of the batch.
func (rs *runs) update(b store.Batch) *run {
	rs.mu.Lock()
	r := rs.byID[b.ID]
	again := r != nil && r.replacedBy(b)
	if again {
		r.close()
	}
	if r == nil || again {
		r = rs.newRun(b)
		r.again = again
		rs.byID[b.ID] = r
	}
	rs.mu.Unlock()
	r.read(b)
	return r
}

// newRun returns a run of the batch.
func (rs *runs) newRun(b store.Batch) *run {
	ctx, cancel := context.WithCancelCause(rs.ctx)
	return &run{id: b.ID, tenant: b.Tenant, limited: hasLimits(&b.Options), batch: b,
		ctx: ctx, cancel: cancel, evicted: rs.evicted, inbox: rs.inbox, limits: rs.limits,
		first: firstStart{wanted: !b.StartBy.IsZero() && b.FirstSentAt.IsZero()},
		held:  newHeldChunks(), results: resultCounts{givenBack: map[int]store.Chunk{}}}
}

// heldModels returns the models of which chunks are held.
func (rs *runs) heldModels() map[string]bool {
	held := map[string]bool{}
	rs.each(func(r *run) { r.heldModels(held) })
	return held
}

// models returns the models of the batches whose lines may start.
func (rs *runs) models() map[string]bool {
	models := map[string]bool{}
	rs.each(func(r *run) {
		r.unlessStopped(func(b *store.Batch) {
			for _, m := range b.Models {
				models[m.Model] = true
			}
		})
	})
	return models
}
