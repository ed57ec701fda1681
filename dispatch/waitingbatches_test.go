package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Who dispatches is needed by every batch that has not ended, also to check it; by a paused one
// from its deadline on.
func TestBatchesThatNeedADispatcher(t *testing.T) {
	s := newShownBatches()
	now := time.Unix(1_800_000_000, 0)
	of := []store.ModelLines{{Model: "m"}}
	for _, b := range []store.Batch{
		{ID: "new", State: store.Validating, Models: of},
		{ID: "other", State: store.InProgress, Models: []store.ModelLines{{Model: "n"}}},
		{ID: "paused", State: store.InProgress, Models: of, Paused: true},
		{ID: "late", State: store.InProgress, Models: of, Paused: true, Deadline: now},
		{ID: "ending", State: store.Cancelling, Models: of, Paused: true},
		{ID: "done", State: store.Completed, Models: of},
	} {
		s.see(&b)
	}
	is := func(model string) func([]string) bool {
		return func(models []string) bool { return slices.Contains(models, model) }
	}
	if m, n := s.waiting(now, is("m")), s.waiting(now, is("n")); m != 3 || n != 1 {
		t.Errorf("%d batches of m and %d of n need one, want 3 and 1", m, n)
	}
	if early := s.waiting(now.Add(-time.Second), is("m")); early != 2 {
		t.Errorf("before the deadline %d need one, want 2", early)
	}
}
