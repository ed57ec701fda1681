package dispatch

import (
	"context"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// runs holds the batches that this process works on, by id. It is safe for concurrent use.
type runs struct {
	mu   sync.Mutex
	byID map[string]*run
}

func newRuns() *runs { return &runs{byID: map[string]*run{}} }

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

// update finds or makes the run of a batch and gives it what was read of the batch. The requests of
// a new run end with ctx.
func (rs *runs) update(ctx context.Context, b store.Batch) *run {
	rs.mu.Lock()
	r := rs.byID[b.ID]
	again := r != nil && r.replacedBy(b)
	if again {
		r.close()
	}
	if r == nil || again {
		r = newRun(ctx, b)
		r.again = again
		rs.byID[b.ID] = r
	}
	rs.mu.Unlock()
	b.Metadata, b.OptionsJSON, b.Errors = nil, nil, nil // large, and of no use here
	r.mu.Lock()
	if b.Version >= r.batch.Version {
		r.batch = b
	}
	r.mu.Unlock()
	return r
}

// heldModels returns the names of the models of which chunks are held.
func (rs *runs) heldModels() map[string]bool {
	held := map[string]bool{}
	rs.each(func(r *run) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, c := range r.chunks {
			held[modelName(c.Model)] = true
		}
		for _, model := range r.reading {
			held[modelName(model)] = true
		}
	})
	return held
}

// models returns the models of the batches whose lines may start.
func (rs *runs) models() map[string]bool {
	models := map[string]bool{}
	rs.each(func(r *run) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, m := range r.batch.Models {
			if !r.stopped {
				models[m.Model] = true
			}
		}
	})
	return models
}
