package dispatch_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Batches that were created before the budget of a server changed and after share it: that of the
// newest. A server with another key is another target.
func TestTargetsHaveTheNewestBudget(t *testing.T) {
	w := newWorld(t)
	d, _ := w.dispatcher("a", nil, serve(t, nil, "other").URL)
	submit := func(perMinute int, key string) {
		w.submit(chatLines(2, "m"), func(b *store.Batch) {
			b.CreatedAt = time.Now()
			b.Resolved = &store.Resolved{Template: "rented", Version: "v1", Mode: "external",
				Models: []string{"m"}, Target: &store.Target{URL: "http://127.0.0.1:1",
					KeyEnv: key, RequestsPerMinute: perMinute}}
		})
	}
	want := func(what string, budgets ...int) {
		t.Helper()
		until(t, what, func() bool {
			all := d.Targets()
			if len(all) != len(budgets) {
				return false
			}
			for i, n := range budgets {
				if all[i].RequestsPerMinute != n {
					return false
				}
			}
			return true
		})
	}
	submit(120, "A")
	want("the budget of the only batch", 120)
	submit(60, "A")
	want("the budget of the newest batch", 60)
	submit(60, "B")
	want("two servers", 60, 60)
}
