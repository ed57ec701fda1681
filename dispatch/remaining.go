package dispatch

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/tidefill/tidefill/store"
)

// remaining holds how many lines of each batch and model are left in chunks that are not done. They
// are counted when this process starts or begins to lead and, for models that others lead, again
// and again.
type remaining struct {
	store Claims
	lines atomic.Pointer[map[string]map[string]int] // by batch and model
}

// count counts the lines left of all batches.
func (rm *remaining) count(ctx context.Context) error {
	left, err := rm.store.LinesLeft(ctx)
	if err == nil {
		rm.lines.Store(&left)
	}
	return err
}

// none reports whether no line of a batch was left at the last count.
func (rm *remaining) none(b *store.Batch) bool {
	left := rm.of(b)
	return !slices.ContainsFunc(b.Models, func(m store.ModelLines) bool {
		return left(m.Model) > 0
	})
}

// of returns how many lines of a batch's model were left at the last count: all of them for a batch
// that is younger.
func (rm *remaining) of(b *store.Batch) func(model string) int {
	if counted := rm.lines.Load(); counted != nil {
		if left, known := (*counted)[b.ID]; known {
			return func(model string) int { return left[model] }
		}
	}
	return linesOf(b)
}

// linesOf returns how many lines a batch has of a model.
func linesOf(b *store.Batch) func(model string) int {
	return func(model string) int {
		for _, m := range b.Models {
			if m.Model == model {
				return m.Lines
			}
		}
		return 0
	}
}
