package telemetry

import (
	"errors"
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// errFrozen comes with a reading without gauges.
var errFrozen = errors.New("it shows requests, but nothing moves")

// frozen recognises a page whose gauges do not follow the engine. vLLM and others set them in each
// iteration, so they keep their last values if all requests are aborted: the page then shows load
// for as long as no request comes. An engine with requests moves its counters or its KV usage,
// during a long prompt too.
type frozen struct {
	after time.Duration // 0: never
	shown [9]float64    // the values last shown
	since time.Time     // Sampled of the first reading with them; zero: none
}

// check removes the gauges of a reading if the page has shown the same values for too long while
// requests run or wait. An engine that does not show its KV usage is not judged: those whose
// counters advance when requests end may stand still for minutes.
func (f *frozen) check(r *flowcontrol.Reading) error {
	values := [...]float64{r.Running, r.Waiting, r.KVUsed, r.PromptTokens, r.CachedTokens,
		r.OutputTokens, r.Preemptions, r.TokenGaps, r.TokenGapTime}
	moved := f.since.IsZero()
	for i, v := range values {
		// A value that was dropped shows nothing.
		if !math.IsNaN(v) {
			moved = moved || v != f.shown[i]
			f.shown[i] = v
		}
	}
	if busy := r.Running > 0 || r.Waiting > 0; moved || !busy || math.IsNaN(r.KVUsed) {
		f.since = r.Sampled
		return nil
	}
	if f.after == 0 || r.Sampled.Sub(f.since) <= f.after {
		return nil
	}
	nan := math.NaN()
	r.Running, r.Waiting, r.KVUsed = nan, nan, nan
	return errFrozen
}
