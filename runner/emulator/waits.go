package emulator

import (
	"slices"
	"time"
)

// waits records the times that the last requests waited for admission.
type waits struct {
	recent [256]time.Duration
	count  int
}

func (w *waits) add(d time.Duration) {
	w.recent[w.count%len(w.recent)] = d
	w.count++
}

// meanAndP95 returns milliseconds; 0 before anything was admitted.
func (w waits) meanAndP95() (mean, p95 float64) {
	known := w.recent[:min(w.count, len(w.recent))]
	if len(known) == 0 {
		return 0, 0
	}
	slices.Sort(known)
	sum := time.Duration(0)
	for _, d := range known {
		sum += d
	}
	return inMilliseconds(sum) / float64(len(known)), inMilliseconds(known[len(known)*95/100])
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
