package oracle

import (
	"fmt"
	"math"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// fluidMargin is the largest error of a fluid bound, as a share: requests arrive in bursts, which
// leave gaps that a mean does not show.
const fluidMargin = 0.05

// fluidWindow is the time over which traffic is averaged: longer than most requests, shorter than
// the daily curve.
const fluidWindow = time.Minute

// Fluid is oracle F: what the engines' cost model leaves for batch work if everything flows at
// constant rates. In each window the interactive requests take their iterations, tokens and memory;
// batch lines fill each iteration up to the TPOT objective, bounded by slots, KV cache and token
// budget. An iteration's time is convex in its content, so a constant load is the cheapest: bursts
// can only increase it.
func Fluid(s simulator.Setup) (Bound, error) {
	mix, supply, err := jobMix(s)
	if err != nil {
		return Bound{}, fmt.Errorf("oracle F of %s: %w", s.Scenario.Name, err)
	}
	loads, err := interactive(s)
	if err != nil {
		return Bound{}, fmt.Errorf("oracle F of %s: %w", s.Scenario.Name, err)
	}
	replicas := max(s.Scenario.Pool.Replicas, s.Scenario.Pool.Max)
	f := fluid{cfg: s.Engine(), mix: mix, tpot: s.Scenario.Interactive.SLO.TPOT.Seconds() * 1000}
	lines := 0.0
	for i, l := range loads {
		span := min(fluidWindow, s.Scenario.Horizon-time.Duration(i)*fluidWindow)
		lines += f.lines(l.dividedBy(float64(replicas)*fluidWindow.Seconds())) *
			span.Seconds() *
			float64(replicas)
		for _, p := range s.Scenario.BatchPools {
			beside := fluid{cfg: s.BatchEngine(p), mix: mix, tpot: math.Inf(1)}
			lines += beside.lines(load{}) * span.Seconds() * float64(
				max(p.Replicas, p.Max))
		}
	}
	note := fmt.Sprintf("even flow over windows of %v, every replica serving all the time",
		fluidWindow)
	if lines > supply {
		lines, note = supply, "all the lines there are; more would fit"
	}
	return Bound{
		Name: "F", Useful: lines * (mix.input + mix.output),
		Work: lines * s.Profile.CostModel.LineWork(int(mix.input), int(mix.output)) / 1000,
		Loss: MaxLoss, Margin: fluidMargin, Note: note,
	}, nil
}

// meanLine is the mean of batch lines.
type meanLine struct {
	input, output float64
	computed      float64 // of input: what the prefix cache does not have
	context       float64 // that a line holds, over those that run at one time
}

const (
	// sampledLines is the number of lines of a job without end that are averaged. backlogWeight is
	// the number for which they count in a mean with others.
	sampledLines  = 2000
	backlogWeight = 1e6
)

// jobMix returns the mean line of a scenario's jobs, and the number of lines.
func jobMix(s simulator.Setup) (m meanLine, lines float64, err error) {
	jobs, err := s.Jobs()
	if err != nil {
		return m, 0, err
	}
	known := map[uint64]bool{}
	total := 0.0
	for {
		j, ok := jobs.Next()
		if !ok {
			break
		}
		if j.At >= s.Scenario.Horizon {
			continue
		}
		n, weight := j.Lines, 1.0
		if j.Lines == workload.Backlog {
			n, weight = sampledLines, backlogWeight/sampledLines
		}
		lines += float64(j.Lines)
		total += weight * float64(n)
		for i := range n {
			r := j.Line(i)
			in, out := float64(r.Input), float64(r.Output)
			m.input += weight * in
			m.output += weight * out
			m.context += weight * out * (in + out/2)
			m.computed += weight * float64(
				uncached(r, s.Scenario.Pool.PrefixCaching, known))
		}
	}
	if total == 0 {
		return meanLine{}, 0, nil
	}
	m.context /= m.output
	m.input, m.output, m.computed = m.input/total, m.output/total, m.computed/total
	return m, lines, nil
}

// uncached returns the number of tokens of a prompt that must be computed if the prefix cache never
// evicts.
func uncached(r workload.Request, caching bool, known map[uint64]bool) int {
	if !caching {
		return r.Input
	}
	hits, missed := 0, false
	for _, b := range r.Blocks(nil, engine.BlockSize) {
		missed = missed || !known[b]
		if !missed {
			hits++
		}
		known[b] = true
	}
	return max(1, r.Input-hits*engine.BlockSize)
}

// load is interactive traffic: sums over a window, or means for each second.
type load struct {
	requests, computed float64
	output             float64 // tokens
	held               float64 // tokens of context, each times the iterations for which it is held
}

func (f load) dividedBy(by float64) load {
	return load{requests: f.requests / by, computed: f.computed / by, output: f.output / by,
		held: f.held / by}
}

// interactive returns the traffic by window. Closed loops are left out, since their rate depends on
// the service.
func interactive(s simulator.Setup) ([]load, error) {
	arrivals, err := s.Traffic()
	if err != nil {
		return nil, err
	}
	windows := make([]load, (s.Scenario.Horizon+fluidWindow-1)/fluidWindow)
	known := map[uint64]bool{}
	for {
		a, ok := arrivals.Next()
		if !ok {
			return windows, nil
		}
		w := &windows[a.At/fluidWindow]
		in, out := float64(a.Input), float64(a.Output)
		w.requests++
		w.computed += float64(uncached(a.Request, s.Scenario.Pool.PrefixCaching, known))
		w.output += out
		w.held += out * (in + out/2)
	}
}

// fluid is one engine.
type fluid struct {
	cfg  engine.Config
	mix  meanLine
	tpot float64 // milliseconds
}

// lines returns the number of batch lines a second that flow through the engine beside interactive
// traffic. While no interactive request is present, the time of an iteration is not limited.
func (f fluid) lines(l load) float64 {
	if f.mix.output == 0 {
		return 0
	}
	bound := f.maxRate(l, f.tpot)
	present := l.output * f.tpot / 1000
	if math.IsInf(f.tpot, 1) {
		present = 0
	}
	alone := portable.Exp(
		-present) // probability that none is present that long, for Poisson arrivals
	return bound*(1-alone) +
		max(bound, f.maxRate(load{}, math.Inf(1)))*alone
}

// maxRate returns the most lines a second at an iteration time up to most.
func (f fluid) maxRate(l load, most float64) float64 {
	model := f.cfg.Profile.CostModel
	longest := min(most, 2*model.Iteration(float64(f.cfg.Profile.MaxBatchedTokens),
		float64(f.cfg.Profile.KVTokens), 0))
	rate := 0.0
	const steps = 100
	for i := 1; i <= steps; i++ {
		ms := model.C0 + (longest-model.C0)*float64(i)/steps
		rate = max(rate, f.running(l, ms)/f.mix.output/ms*1000)
	}
	return rate
}

// running returns the number of lines that may run in iterations of ms milliseconds.
func (f fluid) running(l load, ms float64) float64 {
	p := f.cfg.Profile
	seconds := ms / 1000
	streams, context := l.output*seconds, l.held*seconds
	reading := l.computed * seconds
	low, high := 0.0, min(float64(p.MaxSeqs)-streams, (float64(p.KVTokens)-context)/f.mix.context)
	if high <= 0 || !f.fits(0, streams, context, reading, ms) {
		return 0
	}
	if f.fits(high, streams, context, reading, ms) {
		return high
	}
	for range 40 {
		if middle := (low + high) / 2; f.fits(middle, streams, context, reading, ms) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// fits reports whether lines fit into iterations of ms milliseconds, beside decoding streams with
// some context, and prompt tokens that are read in each iteration.
func (f fluid) fits(lines, streams, context, reading, ms float64) bool {
	model := f.cfg.Profile.CostModel
	reads := lines * f.mix.computed / f.mix.output // each line's prompt, once in its life
	tokens := streams + lines + reading + reads
	if tokens > float64(f.cfg.Profile.MaxBatchedTokens) {
		return false
	}
	took := model.Iteration(tokens, context+lines*f.mix.context, 0) +
		(model.P1+model.P2*f.mix.computed/2)*reads +
		model.P1*reading
	return took <= ms
}
