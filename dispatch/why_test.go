package dispatch_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/store"
)

func TestQueuedBatchesNameTheirOwnTenantsOnly(t *testing.T) {
	up, open, _ := held(t)
	w := newWorld(t)
	d, _ := w.dispatcher("a", nil, up.URL)
	first := w.submit(chatLines(100, "m"), nil)
	w.await(first, "in flight", func(store.Batch) bool { return w.progress(first).InFlight == 16 })
	own := w.submit(chatLines(3, "m"), nil)
	others := w.submit(chatLines(3, "m"), func(b *store.Batch) { b.Tenant = "other" })
	for id, want := range map[string]string{own: "queued: Behind " + first + ". Wait",
		others: "queued: Behind batches of other tenants. Wait"} {
		w.await(id, "waiting: "+want, func(store.Batch) bool {
			return strings.HasPrefix(w.progress(id).Waiting, want)
		})
	}
	// An earlier deadline does not help one that can't be met.
	d.SetForecasts(map[string]store.Forecast{own: {Verdict: store.VerdictInfeasible}})
	w.await(own, "told what helps", func(store.Batch) bool {
		return strings.HasPrefix(w.progress(own).Waiting,
			"queued: Its deadline can't be met, so batches whose deadline can be met go before it.")
	})
	open()
	for _, id := range []string{first, own, others} {
		if b := w.awaitEnd(id); b.State != store.Completed {
			t.Errorf("%s is %s", id, b.State)
		}
	}
}
