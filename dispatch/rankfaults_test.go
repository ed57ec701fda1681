package dispatch_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

func TestRankExpressionThatFailsIsSeen(t *testing.T) {
	w, log, registry := newWorld(t), &jsonLog{}, prometheus.NewRegistry()
	up, open, _ := held(t)
	w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
		log.into(c, d)
		d.Registerer = registry
		d.Scheduler.Policy, d.Scheduler.Expression = "expression",
			`tenant startsWith "team-" ? int(tenant) : lines`
	}, up.URL)
	ranked := w.submit(chatLines(3, "m"), nil)
	team := func(b *store.Batch) { b.Tenant = "team-a" }
	faulty := []string{w.submit(chatLines(3, "m"), team), w.submit(chatLines(3, "m"), team)}
	for _, id := range faulty {
		w.await(id, "unranked", func(store.Batch) bool {
			fault := w.progress(id).Unranked
			return !strings.Contains(fault, "\n") && strings.HasPrefix(fault,
				"queue default: policy expression: run expression: ")
		})
	}
	w.await(faulty[1], "counted", func(store.Batch) bool {
		return metricOf(t, registry, "tidefill_unranked_batches") == 2
	})
	if fault := w.progress(ranked).Unranked; fault != "" {
		t.Errorf("the other batch has the fault %s", fault)
	}
	if e := log.of(t, "the ordering policy can't rank a batch, which goes last; correct "+
		"scheduler.expression (logged once for this fault)"); len(e) != 1 ||
		e[0]["tenant"] != "team-a" {
		t.Errorf("the log has %v", e)
	}
	open()
	for _, id := range append(faulty, ranked) {
		if b := w.awaitEnd(id); b.State != store.Completed {
			t.Errorf("%s is %s", id, b.State)
		}
	}
}
