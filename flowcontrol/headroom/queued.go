package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// queued is the number of interactive requests that wait on a runner, as its capabilities show it.
// It stands in for metrics: while requests wait, no further line may start before them.
type queued struct {
	requests float64
	at       time.Time // Sampled of the reading; zero: none
}

// read takes over a reading. It reports whether it shows anything new.
func (q *queued) read(m *flowcontrol.Reading, own *ownLoad) bool {
	if !(m.Waiting >= 0) || !m.Sampled.After(q.at) {
		return false
	}
	q.requests, q.at = max(0, m.Waiting-own.at(m.Sampled).waiting), m.Sampled
	return true
}

// queues reports whether interactive requests wait on a runner, as far as only its capabilities
// show that.
func (c *Controller) queues(now time.Time, r *runner) bool {
	return c.shared && r.queued.requests >= 1 && c.recent(now, r.queued.at) &&
		!c.recent(now, r.interactive.seenAt)
}
