package emulator

import (
	"math"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Timing is the delay with which the engine ended its iterations: the error that the machine adds
// to the model. An iteration that ends late delivers its tokens late, and delays no other. Times
// are real, in milliseconds.
type Timing struct {
	Iterations uint64  `json:"iterations"`
	Mean       float64 `json:"mean_iteration_ms"`
	// LateP50 and LateP99 are quantiles of the lateness, up to 5 % too high; LateMax is the
	// largest.
	LateP50 float64 `json:"late_p50_ms"`
	LateP99 float64 `json:"late_p99_ms"`
	LateMax float64 `json:"late_max_ms"`
}

// timing counts the lateness of iterations in buckets, so that its memory is bounded.
type timing struct {
	iterations uint64
	total, max time.Duration // of iterations; of their lateness
	buckets    [latenessBuckets]uint64
}

// The buckets of lateness end at minLateness times powers of latenessGrowth, the last at a
// minute.
const (
	minLateness     = 10 * time.Microsecond
	latenessGrowth  = 1.05
	latenessBuckets = 321
)

// add counts an iteration, or a run of them, that ended as late.
func (t *timing) add(it *engine.Iteration, late time.Duration, c clock) {
	late = max(0, late)
	t.iterations += uint64(len(it.Steps))
	t.total += c.real(it.End.Sub(it.Start))
	t.max = max(t.max, late)
	bucket := 0
	if late > minLateness {
		bucket = int(math.Ceil(math.Log(float64(late)/float64(minLateness)) /
			math.Log(latenessGrowth)))
	}
	t.buckets[min(bucket, latenessBuckets-1)] += uint64(len(it.Steps))
}

func (t *timing) read() Timing {
	if t.iterations == 0 {
		return Timing{}
	}
	return Timing{Iterations: t.iterations,
		Mean:    inMilliseconds(t.total) / float64(t.iterations),
		LateP50: t.quantile(0.5), LateP99: t.quantile(0.99), LateMax: inMilliseconds(t.max)}
}

// quantile returns the upper bound of the bucket that holds a quantile.
func (t *timing) quantile(q float64) float64 {
	rank, counted := uint64(math.Ceil(q*float64(t.iterations))), uint64(0)
	for i, n := range t.buckets {
		if counted += n; counted >= rank {
			bound := inMilliseconds(minLateness) * math.Pow(latenessGrowth, float64(i))
			return min(bound, max(inMilliseconds(t.max), inMilliseconds(minLateness)))
		}
	}
	return inMilliseconds(t.max)
}

// Timing returns the timing since the start. The profile Instant has no iterations.
func (s *Server) Timing() Timing {
	if s.loop == nil {
		return Timing{}
	}
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	return s.loop.timing.read()
}

func (s *Server) getTiming(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.Timing())
}
