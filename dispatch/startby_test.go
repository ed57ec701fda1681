package dispatch_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// metricOf returns the sum of a counter or a gauge over its labels.
func metricOf(t *testing.T, registry *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func TestMissedStartIsReportedOnce(t *testing.T) {
	w, log, registry := newWorld(t), &jsonLog{}, prometheus.NewRegistry()
	up, open, _ := held(t)
	w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
		log.into(c, d)
		d.Registerer = registry
	}, up.URL)
	first := w.submit(chatLines(16, "m"), func(b *store.Batch) { // all slots
		b.StartBy = time.Now().Add(time.Hour)
	})
	w.await(first, "started", func(b store.Batch) bool { return !b.FirstSentAt.IsZero() })
	late := w.submit(chatLines(3, "m"), func(b *store.Batch) {
		b.StartBy = time.Now().Add(50 * time.Millisecond)
	})
	b := w.await(late, "missed", func(b store.Batch) bool { return b.StartMissed })
	if !b.FirstSentAt.IsZero() {
		t.Errorf("a line was sent at %v", b.FirstSentAt)
	}
	open()
	for _, id := range []string{first, late} {
		w.awaitEnd(id)
	}
	if b := w.batch(late); !b.StartMissed || !b.FirstSentAt.After(b.StartBy) {
		t.Errorf("at its end, missed is %v, sent at %v of %v", b.StartMissed, b.FirstSentAt,
			b.StartBy)
	}
	if w.batch(first).StartMissed {
		t.Error("a start in time counts as missed")
	}
	entries := log.of(t, "start_by missed: no line of the batch was in flight by then")
	if len(entries) != 1 || entries[0]["batch_id"] != late {
		t.Errorf("the log has %v", entries)
	}
	if n := metricOf(t, registry, "tidefill_start_by_missed_total"); n != 1 {
		t.Errorf("the metric is %v, want 1", n)
	}
}

// A line that was sent before a restart keeps the promise after it.
func TestStartBeforeARestartCounts(t *testing.T) {
	w := newWorld(t)
	up, _, _ := held(t)
	soon := time.Now().Add(2 * time.Second)
	_, stop := w.dispatcher("a", func(c *dispatch.Config, _ *dispatch.Deps) { c.Drain = 0 }, up.URL)
	id := w.submit(chatLines(3, "m"), func(b *store.Batch) { b.StartBy = soon })
	w.await(id, "started", func(b store.Batch) bool { return !b.FirstSentAt.IsZero() })
	stop()
	down := serve(t, nil, "other")
	var checks events
	w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
		c.WaitForModels = true
		d.Expiry = func() time.Time { checks.add(); return soon.Add(time.Hour) }
	}, down.URL)
	checks.await(t, 2) // before and after the check of the start
	if w.batch(id).StartMissed {
		t.Error("the start counts as missed")
	}
}
