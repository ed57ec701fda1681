package upstream

import (
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
)

// droppedEvery is the time between two records that a runner drops requests for a reason.
const droppedEvery = time.Minute

// droppedLog spaces the logs of why a runner drops requests.
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
