package replay

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/tidefill/tidefill/internal/portable"
	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator/workload"
)

// runner is what a recording has about one engine.
type runner struct {
	counted *recording.Reading // the last reading of the counters; nil: none yet
	samples []counterSample    // the bounds of the intervals
	lines   []line
}

// counterSample is what an engine had counted at a time, batch lines included.
type counterSample struct{ at, requests, prompt, output float64 }

// line is a batch line: the times of its first and its last token.
type line struct{ first, last, prompt, output float64 }

// interval is a period on one runner, with the interactive requests that began in it.
type interval struct{ from, to, requests, prompt, output float64 }

func (r *runner) addReading(m *recording.Reading) {
	if m.PromptTokens.Known() && m.OutputTokens.Known() {
		r.counted = m
	}
}

func (r *runner) addHistogram(at float64, ttft recording.Histogram) {
	if r.counted != nil && len(ttft) > 0 {
		r.samples = append(r.samples, counterSample{at, ttft[len(ttft)-1][1],
			float64(r.counted.PromptTokens),
			float64(r.counted.OutputTokens)})
	}
}

func (r *runner) addLine(at float64, l *recording.Line) {
	r.lines = append(r.lines, line{at - l.Took + l.First, at, float64(l.Prompt), float64(l.Output)})
}

// interactive returns what the engine counted between samples, minus the batch lines.
func (r *runner) interactive() (all []interval) {
	slices.SortFunc(r.lines, func(a, b line) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(r.samples); i++ {
		x, y := r.samples[i-1], r.samples[i]
		s := interval{from: x.at, to: y.at, requests: y.requests - x.requests,
			prompt: y.prompt - x.prompt, output: y.output - x.output}
		if s.requests < 0 || s.prompt < 0 || s.output < 0 || s.to <= s.from {
			continue // it was restarted
		}
		for _, l := range r.lines {
			if l.first >= s.to {
				break
			}
			if l.first >= s.from {
				s.requests--
				s.prompt -= l.prompt
			}
			if within := min(l.last, s.to) - max(l.first, s.from); within > 0 {
				s.output -= l.output * within / max(l.last-l.first, 1e-3)
			}
		}
		s.requests, s.prompt, s.output = max(0, s.requests), max(0, s.prompt), max(0, s.output)
		all = append(all, s)
	}
	return all
}

// sizeSigma is the standard deviation of the logarithm of interactive sizes, as in published
// traffic.
const sizeSigma = 0.8

// Traffic returns as many interactive requests as there were in each interval; nil: there were
// none. It fails if the recording does not have their number.
func (b *Builder) Traffic(seed workload.Seed) (*workload.Trace, error) {
	var stretches []interval
	marks := 0
	all := slices.Clone(b.ended)
	for _, id := range slices.Sorted(maps.Keys(b.runners)) {
		all = append(all, b.runners[id])
	}
	for _, r := range all {
		marks = max(marks, len(r.samples))
		stretches = append(stretches, r.interactive()...)
	}
	if marks < 2 {
		return nil, errors.New(
			"the recording does not have how many requests the engines served: record for a " +
				"minute or more, from engines that export a histogram of TTFT and counters of " +
				"tokens")
	}
	var sum interval
	for _, s := range stretches {
		sum.requests, sum.prompt, sum.output = sum.requests+s.requests, sum.prompt+s.prompt,
			sum.output+s.output
	}
	rng := seed.Rand("replay")
	size := func(mean float64) int {
		a, _ := portable.Normals(rng)
		x := mean * portable.Exp(sizeSigma*a-float64(sizeSigma*sizeSigma)/2)
		return max(1, int(min(x, 16*mean)+0.5))
	}
	var arrivals []workload.Arrival
	left := 0.0 // of a request
	for _, s := range stretches {
		input := sum.prompt / sum.requests
		if s.requests >= 10 { // else chance decides
			input = s.prompt / s.requests
		}
		for left += s.requests; left >= 1; left-- {
			at := s.from + rng.Float64()*(s.to-s.from)
			arrivals = append(arrivals, workload.Arrival{At: b.since(at), Request: workload.Request{
				Input: size(max(1, input)), Output: size(max(1, sum.output/sum.requests))}})
		}
	}
	if len(arrivals) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(arrivals, func(x, y workload.Arrival) int {
		return cmp.Compare(x.At, y.At)
	})
	// Jobs have the times of the recording, so the requests keep theirs, and the trace its length.
	return workload.NewTrace("recording", arrivals, b.Length())
}
