package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
)

// droppedEvery is how often the log repeats that a runner drops requests for a reason.
const droppedEvery = time.Minute

// droppedLog limits how often the log says why a runner drops requests.
type droppedLog struct {
	mu   sync.Mutex
	last map[openai.DropReason]time.Time
}

// due reports whether a reason is to be logged now.
func (d *droppedLog) due(reason openai.DropReason, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if last, known := d.last[reason]; known && now.Sub(last) < droppedEvery {
		return false
	}
	if d.last == nil {
		d.last = map[openai.DropReason]time.Time{}
	}
	d.last[reason] = now
	return true
}

// reported counts and logs what an answer's headers say about the runner.
func (t *transport) reported(ctx context.Context, u *runner, a openai.Answer) {
	r := a.Report
	if r.QueueWait >= 0 {
		t.metrics.queueWait.WithLabelValues(u.name).Observe(r.QueueWait.Seconds())
	}
	if r.GPUTime > 0 {
		t.metrics.gpuTime.WithLabelValues(u.name).Add(r.GPUTime.Seconds())
	}
	if r.Dropped == "" {
		return
	}
	t.metrics.dropped.WithLabelValues(u.name, string(r.Dropped)).Inc()
	if u.dropped.due(r.Dropped, time.Now()) {
		t.log.WarnContext(ctx, "a gateway drops requests", "runner", u.name,
			"reason", string(r.Dropped), "status", a.Status)
	}
}
