package dispatch

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/upstream"
)

// reported counts and logs what an answer's headers say about the runner.
func (t *transport) reported(ctx context.Context, u *upstream.Runner, a openai.Answer) {
	r := a.Report
	if r.QueueWait >= 0 {
		t.metrics.queueWait.WithLabelValues(u.Name).Observe(r.QueueWait.Seconds())
	}
	if r.GPUTime > 0 {
		t.metrics.gpuTime.WithLabelValues(u.Name).Add(r.GPUTime.Seconds())
	}
	if r.Dropped == "" {
		return
	}
	t.metrics.dropped.WithLabelValues(u.Name, string(r.Dropped)).Inc()
	if u.LogsDrop(r.Dropped, time.Now()) {
		t.log.WarnContext(ctx, "a gateway drops requests", "runner", u.Name,
			"reason", string(r.Dropped), "status", a.Status)
	}
}
