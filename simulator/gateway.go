package simulator

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// gateway measures the latencies of interactive requests as a gateway before the pool would.
type gateway struct {
	// lines reports whether batch lines pass through it and are counted, as the first class.
	lines      bool
	ttft, tpot []latencyMeter // by class of traffic
	// of answered requests
	prompts, answers lengthMeter
	// measurements that lie in the future
	pending []observation
}

// observation is what the gateway has measured at a time.
type observation struct {
	at      time.Time
	meter   *latencyMeter // nil: no latency
	latency time.Duration
	late    bool
	// prompt and answer are the tokens of a request that is answered; 0: it is not.
	prompt, answer int
}

// latencyMeter counts latencies against one objective: exactly, or in a histogram if it has bounds.
type latencyMeter struct {
	objective time.Duration
	bounds    []time.Duration
	counts    []float64 // by bucket; the last has no bound
	late      float64
}

// newGateway returns nil where the scenario has no gateway.
func newGateway(m scenario.Metrics, objectives []scenario.SLO) *gateway {
	if m.Gateway == scenario.GatewayOff {
		return nil
	}
	g := &gateway{lines: m.Gateway == scenario.GatewayContaminated,
		prompts: newLengthMeter(1 << 20), answers: newLengthMeter(1 << 13)}
	for _, slo := range objectives {
		ttft, tpot := latencyMeter{objective: slo.TTFT}, latencyMeter{objective: slo.TPOT}
		if m.Gateway.HasBuckets() {
			ttft.bounds, tpot.bounds = boundsOr(m.TTFTBuckets, ttftBounds, slo.TTFT),
				boundsOr(m.TPOTBuckets, tpotBounds, slo.TPOT)
		}
		for _, meter := range []*latencyMeter{&ttft, &tpot} {
			meter.counts = make([]float64, len(meter.bounds)+1)
		}
		g.ttft, g.tpot = append(g.ttft, ttft), append(g.tpot, tpot)
	}
	return g
}

// boundsOr returns the given bounds, or else the usual ones with the objective among them: a
// gateway with an SLO has a bucket bound there.
func boundsOr(given, usual []time.Duration, objective time.Duration) []time.Duration {
	if len(given) > 0 {
		return given
	}
	at, found := slices.BinarySearch(usual, objective)
	if found || objective == 0 {
		return usual
	}
	return slices.Insert(slices.Clone(usual), at, objective)
}

var (
	// These are the histogram bounds of the endpoint picker of the Kubernetes Gateway API inference
	// extension, up to two minutes.
	ttftBounds = milliseconds(5, 25, 50, 100, 200, 400, 600, 800, 1000, 1250, 1500, 2000, 3000,
		4000,
		5000, 6000, 8000, 10_000,
		15_000, 20_000, 30_000, 45_000, 60_000, 120_000)
	tpotBounds = milliseconds(0.5, 2.05, 5, 10, 20, 40, 60, 80, 100, 125, 150, 200, 300, 400, 500,
		600, 800, 1000, 1500, 2000, 3000,
		4500, 6000, 12_000)
)

func milliseconds(ms ...float64) []time.Duration {
	all := make([]time.Duration, len(ms))
	for i, m := range ms {
		all[i] = time.Duration(m * float64(time.Millisecond))
	}
	return all
}

// counts reports whether a request is one that the gateway counts. A nil gateway counts none.
func (g *gateway) counts(req *request) bool {
	return g != nil && (req.line == nil || g.lines && req.replica.pool.name == "")
}

// firstToken measures the first token of a request. A late one is known to a gateway that knows the
// objective.
func (g *gateway) firstToken(req *request, slo scenario.SLO) {
	seen := req.first.Add(engine.ServerDelay(1))
	g.observe(observation{at: seen, meter: &g.ttft[req.class], latency: seen.Sub(req.sent),
		late: seen.Sub(req.arrived) > slo.FirstToken(req.input)})
}

// finished measures the answer of a request.
func (g *gateway) finished(req *request, c engine.Completion, slo scenario.SLO) {
	seen := observation{at: c.Finished.Add(engine.ServerDelay(c.Output)), prompt: req.input,
		answer: c.Output}
	if tpot := timePerToken(c); tpot > 0 {
		seen.meter, seen.latency, seen.late = &g.tpot[req.class], tpot, tpot > slo.TPOT
	}
	g.observe(seen)
}

// timePerToken returns the mean time between the tokens of an answer as a client sees it; 0: it has
// a single one.
func timePerToken(c engine.Completion) time.Duration {
	if c.Output < 2 {
		return 0
	}
	rest := c.Finished.Sub(c.FirstToken) + engine.ServerDelay(c.Output) - engine.ServerDelay(1)
	return rest / time.Duration(c.Output-1)
}

// observe schedules a measurement that is complete at its time.
func (g *gateway) observe(o observation) { g.pending = append(g.pending, o) }

// catchUp counts the measurements that are complete by now.
func (g *gateway) catchUp(now time.Time) {
	g.pending = slices.DeleteFunc(g.pending, func(o observation) bool {
		if o.at.After(now) {
			return false
		}
		if o.meter != nil {
			o.meter.add(o.latency, o.late)
		}
		if o.answer > 0 {
			g.prompts.add(o.prompt)
			g.answers.add(o.answer)
		}
		return true
	})
}

func (m *latencyMeter) add(took time.Duration, late bool) {
	bucket, _ := slices.BinarySearch(m.bounds, took)
	m.counts[bucket]++
	if late {
		m.late++
	}
}

// attained returns what the daemon would read from the meter.
func (m *latencyMeter) attained() flowcontrol.Attainment {
	switch {
	case m.objective == 0:
		return flowcontrol.Attainment{Requests: math.NaN(), Late: math.NaN()}
	case len(m.bounds) == 0:
		return flowcontrol.Attainment{Requests: m.counts[0], Late: m.late}
	}
	return flowcontrol.Attained(m.buckets(), m.objective.Seconds())
}

// buckets returns the histogram, cumulative as Prometheus shows it; nil if there is none.
func (m *latencyMeter) buckets() []flowcontrol.Bucket {
	if len(m.bounds) == 0 {
		return nil
	}
	buckets, sum := make([]flowcontrol.Bucket, 0, len(m.counts)), 0.0
	for i, n := range m.counts {
		upper := math.Inf(1)
		if i < len(m.bounds) {
			upper = m.bounds[i].Seconds()
		}
		sum += n
		buckets = append(buckets, flowcontrol.Bucket{Upper: upper, Count: sum})
	}
	return buckets
}

// reading returns the gateway's counters at a time, over all classes.
func (g *gateway) reading(now time.Time) flowcontrol.Reading {
	g.catchUp(now)
	sum := func(meters []latencyMeter) (all flowcontrol.Attainment) {
		for i := range meters {
			a := meters[i].attained()
			all.Requests += a.Requests
			all.Late += a.Late
		}
		return all
	}
	r := flowcontrol.NoReading(flowcontrol.Gateway, now)
	r.TTFT, r.TPOT = sum(g.ttft), sum(g.tpot)
	r.FirstTokenTimes, r.TokenTimes = g.ttft[0].buckets(), g.tpot[0].buckets()
	r.PromptLengths = buckets(g.prompts.bounds, g.prompts.counts)
	r.AnswerLengths = buckets(g.answers.bounds, g.answers.counts)
	return r
}
