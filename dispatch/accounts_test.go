package dispatch

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tidefill/tidefill/store"
)

// However many tenants and models there are, their series are limited, and nothing is left out.
func TestSeriesOfTenantsAreLimited(t *testing.T) {
	m := newMetrics(nil)
	for round := range 2 {
		for i := range 300 {
			m.Committed(fmt.Sprintf("t%d\xff", i), "m", store.Commit{Completed: 1 + round})
		}
	}
	if n := testutil.CollectAndCount(m.lines); n != 2*(maxAccounts+1) {
		t.Errorf("there are %d series of lines, want %d", n, 2*(maxAccounts+1))
	}
	first := testutil.ToFloat64(m.lines.WithLabelValues("completed", "t0?", "m"))
	others := testutil.ToFloat64(
		m.lines.WithLabelValues("completed", otherAccounts, otherAccounts))
	if first != 3 || others != 300 {
		t.Errorf("the first tenant has %v lines and the others %v, want 3 and 300", first, others)
	}
}
