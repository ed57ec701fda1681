package work

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/tidefill/tidefill/store"
)

// Remaining holds the number of lines of each batch and model that are left in chunks that are not
// done. They are counted when this process starts or begins to lead and, for models that others
// lead, again and again.
type Remaining struct {
	Store LinesCounter
	lines atomic.Pointer[map[string]map[string]int] // by batch and model
}

// LinesCounter is the part of the store that counts lines.
type LinesCounter interface {
	LinesLeft(ctx context.Context) (map[string]map[string]int, error)
}

// Count counts the lines left of all batches.
func (rm *Remaining) Count(ctx context.Context) error {
	left, err := rm.Store.LinesLeft(ctx)
	if err == nil {
		rm.lines.Store(&left)
	}
	return err
}

// None reports whether no line of a batch was left at the last count.
func (rm *Remaining) None(b *store.Batch) bool {
	left := rm.Of(b)
	return !slices.ContainsFunc(b.Models, func(m store.ModelLines) bool {
		return left(m.Model) > 0
	})
}

// Of returns a function of the number of lines of a batch's model that were left at the last count.
// A batch that is younger has all of them.
func (rm *Remaining) Of(b *store.Batch) func(model string) int {
	if counted := rm.lines.Load(); counted != nil {
		if left, known := (*counted)[b.ID]; known {
			return func(model string) int { return left[model] }
		}
	}
	return LinesOf(b)
}

// LinesOf returns a function of the number of lines that a batch has of a model.
func LinesOf(b *store.Batch) func(model string) int {
	return func(model string) int {
		for _, m := range b.Models {
			if m.Model == model {
				return m.Lines
			}
		}
		return 0
	}
}
