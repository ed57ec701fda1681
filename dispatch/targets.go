package dispatch

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// Target is a server elsewhere that batches which have not ended use, by their external template.
type Target struct {
	Pool   string // name of its pool, which no other target has
	Models []string
	// Target has the budget of the newest of the batches.
	store.Target
	newest time.Time // when this batch was created
}

// targets knows the targets in use. It is safe for concurrent use.
type targets struct {
	changed func() // may be nil

	mu      sync.Mutex
	byBatch map[string]string // pool, by batch
	all     map[string]Target // by pool
}

// see takes over what was read of a batch.
func (t *targets) see(b *store.Batch) {
	if b.Resolved == nil || b.Resolved.Target == nil {
		return
	}
	if b.State.Terminal() {
		t.forget(b.ID)
		return
	}
	pool := work.TargetPool(b.Resolved)
	t.mu.Lock()
	before := t.all[pool]
	t.byBatch[b.ID] = pool
	if !b.CreatedAt.Before(before.newest) {
		t.all[pool] = Target{Pool: pool, Models: b.Resolved.Models, Target: *b.Resolved.Target,
			newest: b.CreatedAt}
	}
	differs := t.all[pool].Target != before.Target
	t.mu.Unlock()
	if differs && t.changed != nil {
		t.changed()
	}
}

// forget notes that a batch has ended.
func (t *targets) forget(batch string) {
	t.mu.Lock()
	pool, known := t.byBatch[batch]
	delete(t.byBatch, batch)
	last := known && !slices.Contains(slices.Collect(maps.Values(t.byBatch)), pool)
	if last {
		delete(t.all, pool)
	}
	t.mu.Unlock()
	if last && t.changed != nil {
		t.changed()
	}
}

// Targets lists the servers elsewhere that batches use, by pool.
func (d *Dispatcher) Targets() []Target {
	d.targets.mu.Lock()
	defer d.targets.mu.Unlock()
	return slices.SortedFunc(maps.Values(d.targets.all), func(a, b Target) int {
		return strings.Compare(a.Pool, b.Pool)
	})
}
