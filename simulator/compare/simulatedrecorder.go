package compare

import (
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator"
)

// histogramInterval is the simulated time between two records of latency histograms, as in a
// daemon.
const histogramInterval = 10 * time.Second

// latencyPair is the histograms of TTFT and TPOT.
type latencyPair [2]*recording.Latency

// simulatedRecorder records a simulation as the daemon records a real pool.
type simulatedRecorder struct {
	*recording.Recorder
	summary    recording.Summary
	ttft, tpot []float64 // edges of the histograms
	runners    map[string]*latencyPair
	users      latencyPair
	last       time.Time // when histograms were recorded last
}

var _ interface {
	simulator.Recorder
	recording.Sink
} = (*simulatedRecorder)(nil)

func newSimulatedRecorder(ttft, tpot []float64) *simulatedRecorder {
	r := &simulatedRecorder{ttft: ttft, tpot: tpot, runners: map[string]*latencyPair{}}
	r.users = r.newPair()
	r.Recorder = recording.NewRecorder(simulator.Epoch(), r)
	return r
}

func (r *simulatedRecorder) newPair() latencyPair {
	return latencyPair{recording.NewLatency(r.ttft), recording.NewLatency(r.tpot)}
}

// Put implements recording.Sink.
func (r *simulatedRecorder) Put(e recording.Entry) { r.summary.Add(e) }

// Step implements simulator.Recorder. It records the histograms when they are due.
func (r *simulatedRecorder) Step(now time.Time, ev plan.Event, did plan.Actions) {
	r.Recorder.Step(now, ev, did)
	if up, is := ev.(plan.RunnerUp); is && r.runners[up.Runner] == nil {
		pair := r.newPair()
		r.runners[up.Runner] = &pair
		r.record(now, up.Runner, &pair)
	}
	if r.last.IsZero() || now.Sub(r.last) >= histogramInterval {
		r.last = now
		r.record(now, "", &r.users)
		for _, runner := range slices.Sorted(maps.Keys(r.runners)) {
			r.record(now, runner, r.runners[runner])
		}
	}
}

func (r *simulatedRecorder) record(now time.Time, runner string, of *latencyPair) {
	r.Recorder.Latencies(now, runner, "", of[0].Buckets(), of[1].Buckets())
}

// Served implements simulator.Recorder.
func (r *simulatedRecorder) Served(_ time.Time, s simulator.ServedRequest) {
	if of := r.runners[s.Runner]; of != nil {
		of.observe(s)
	}
	if !s.Batch {
		r.users.observe(s)
	}
}

func (p *latencyPair) observe(s simulator.ServedRequest) {
	p[0].Observe(s.TTFT.Seconds())
	if s.TPOT > 0 {
		p[1].Observe(s.TPOT.Seconds())
	}
}
