package app

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/store"
)

// A dry run calls a deadline infeasible if nine of ten batches like it miss it.
func TestVerdictBeforeABatchIsCreated(t *testing.T) {
	due := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	before, after := due.Add(-time.Minute), due.Add(time.Minute)
	for _, c := range []struct {
		name              string
		verdict           store.Verdict
		deadline          time.Time
		earliest, nearest time.Time
		want              store.Verdict
	}{
		{"the whole band is late", store.VerdictAtRisk, due, after, after, store.VerdictInfeasible},
		{"no window is long enough", store.VerdictAtRisk, due, after, time.Time{},
			store.VerdictInfeasible},
		{"one of ten is in time", store.VerdictAtRisk, due, before, after, store.VerdictAtRisk},
		{"the window may do", store.VerdictAtRisk, due, after, before, store.VerdictAtRisk},
		{"in time", store.VerdictOK, due, before, before, store.VerdictOK},
		{"without a deadline", "", time.Time{}, after, time.Time{}, ""},
		{"unknown", "", due, time.Time{}, time.Time{}, ""},
	} {
		p := api.Preview{Nearest: c.nearest,
			Forecast: store.Forecast{Verdict: c.verdict, Earliest: c.earliest}}
		if got := doubted(p, c.deadline); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
