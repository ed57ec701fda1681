package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func TestShownBatchesAreOrderedByDeadline(t *testing.T) {
	s := newShownBatches()
	at := func(hours int) time.Time { return time.Unix(int64(3600*hours), 0) }
	for _, b := range []store.Batch{
		{ID: "none-2", State: store.InProgress, CreatedAt: at(2)},
		{ID: "late", State: store.Validating, CreatedAt: at(1), Deadline: at(9)},
		{ID: "none-1", State: store.InProgress, CreatedAt: at(1)},
		{ID: "soon", State: store.Cancelling, CreatedAt: at(4), Deadline: at(5)},
		{ID: "done", State: store.InProgress, CreatedAt: at(0)},
		{ID: "done", State: store.Completed, CreatedAt: at(0)},
		{ID: "done", State: store.Completed, CreatedAt: at(0)}, // reported again
	} {
		s.see(&b)
	}
	living, all, ended := s.list(3)
	if !slices.Equal(living, []string{"soon", "late", "none-1"}) || all != 4 ||
		!slices.Equal(ended, []string{"done"}) {
		t.Errorf("shown are %v of %d, and %v", living, all, ended)
	}
	s.forget("soon")
	s.forget("done")
	if living, all, ended := s.list(1); living[0] != "late" || all != 3 || len(ended) != 0 {
		t.Errorf("after two were deleted: %v of %d, and %v", living, all, ended)
	}
	for i := range 3 * maxEnded {
		s.see(&store.Batch{ID: fmt.Sprint(i), State: store.Failed})
	}
	if _, _, ended := s.list(1); len(ended) != maxEnded || ended[0] != fmt.Sprint(3*maxEnded-1) {
		t.Errorf("ended are %v", ended)
	}
}
