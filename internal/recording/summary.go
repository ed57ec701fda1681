package recording

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Summary computes statistics of a recording, to compare it with another one. The zero value is a
// summary of no entries.
type Summary struct {
	From, To float64 // times of the first and the last entry, in seconds
	started  bool

	running   map[int]*average // by runner
	waiting   map[int]*average
	harvested int64 // tokens of lines answered
	first     []float64
	gaps      []weighted
	engines   map[int]*latencyGrowth // by runner
	gateways  map[int]*latencyGrowth // by model
}

// average is the mean over time of a value that changes at samples.
type average struct {
	sum, seconds float64 // of the times in which the value was known
	value, since float64
	known        bool
}

// weighted is a value with a weight.
type weighted struct{ value, weight float64 }

// latencyGrowth is the growth of two histograms.
type latencyGrowth struct{ ttft, tpot growth }

// growth counts, by bound, the requests that took no longer, since the first histogram. After a
// restart the histogram begins at zero, and the requests between the last sample and the restart
// are lost.
type growth struct {
	last Histogram
	sum  map[float64]float64
}

// Add adds the next entry.
func (s *Summary) Add(e Entry) {
	if !s.started {
		s.started, s.From = true, e.At
		s.running, s.waiting = map[int]*average{}, map[int]*average{}
		s.engines, s.gateways = map[int]*latencyGrowth{}, map[int]*latencyGrowth{}
	}
	s.To = e.At
	switch {
	case e.Reading != nil && e.Reading.Source == "metrics":
		set(s.running, e.Reading.Runner, e.At, e.Reading.Running)
		set(s.waiting, e.Reading.Runner, e.At, e.Reading.Waiting)
	case e.Line != nil:
		if e.Line.End == "succeeded" {
			s.harvested += int64(e.Line.Prompt) + int64(e.Line.Output)
		}
		if e.Line.First > 0 {
			s.first = append(s.first, e.Line.First)
		}
	case e.Gaps != nil:
		s.gaps = append(s.gaps, weighted{e.Gaps.Took / float64(e.Gaps.Count),
			float64(e.Gaps.Count)})
	case e.Latencies != nil:
		of, key := s.engines, e.Latencies.Runner
		if key == 0 {
			of, key = s.gateways, e.Latencies.Model
		}
		if of[key] == nil {
			of[key] = &latencyGrowth{}
		}
		of[key].ttft.add(e.Latencies.TTFT)
		of[key].tpot.add(e.Latencies.TPOT)
	}
}

func set(of map[int]*average, runner int, at float64, value Number) {
	l := of[runner]
	if l == nil {
		l = &average{}
		of[runner] = l
	}
	if l.known {
		l.sum, l.seconds = l.sum+l.value*(at-l.since), l.seconds+at-l.since
	}
	l.known, l.value, l.since = value.Known(), float64(value), at
}

func (g *growth) add(h Histogram) {
	if len(h) == 0 {
		return
	}
	if g.sum == nil {
		g.sum = map[float64]float64{}
	}
	if len(g.last) == len(h) && g.last[len(h)-1][1] <= h[len(h)-1][1] {
		for i := range h {
			g.sum[bound(h[i])] += max(0, h[i][1]-g.last[i][1])
		}
	}
	g.last = h
}

func bound(pair [2]float64) float64 {
	if pair[0] < 0 {
		return math.Inf(1)
	}
	return pair[0]
}

// Figure is one statistic. NaN: the recording has no data for it.
type Figure struct {
	Name, Unit string
	Value      float64
}

// Figures returns all statistics, always the same ones in the same order.
func (s *Summary) Figures() []Figure {
	figures := []Figure{
		{"requests running, all runners", "", mean(s.running)},
		{"requests waiting, all runners", "", mean(s.waiting)},
		{"harvest", "tokens/s", s.perSecond(float64(s.harvested))},
	}
	quantiles := func(name, unit string, of func(q float64) float64) {
		for _, q := range []struct {
			name  string
			share float64
		}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}} {
			figures = append(figures, Figure{name + " " + q.name, unit, of(q.share)})
		}
	}
	engineTTFT, engineTPOT := totals(s.engines)
	ttft, tpot := totals(s.gateways)
	quantiles("interactive TTFT", "s", func(q float64) float64 { return quantile(ttft, q) })
	quantiles("interactive TPOT", "s", func(q float64) float64 { return quantile(tpot, q) })
	quantiles("TTFT of all requests", "s", func(q float64) float64 {
		return quantile(engineTTFT, q)
	})
	quantiles("TPOT of all requests", "s", func(q float64) float64 {
		return quantile(engineTPOT, q)
	})
	slices.Sort(s.first)
	quantiles("TTFT of batch lines", "s", func(q float64) float64 {
		if len(s.first) == 0 {
			return math.NaN()
		}
		return s.first[min(len(s.first)-1, int(q*float64(len(s.first))))]
	})
	slices.SortFunc(s.gaps, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	quantiles("iteration, mean of a second", "s", s.gap)
	return figures
}

func (s *Summary) perSecond(sum float64) float64 {
	if s.To <= s.From {
		return math.NaN()
	}
	return sum / (s.To - s.From)
}

// mean returns the sum of the mean values of all runners, each over the time in which its value was
// known.
func mean(of map[int]*average) float64 {
	sum, some := 0.0, false
	for _, runner := range slices.Sorted(maps.Keys(of)) {
		if l := of[runner]; l.seconds > 0 {
			sum, some = sum+l.sum/l.seconds, true
		}
	}
	if !some {
		return math.NaN()
	}
	return sum
}

// totals returns the sum of the growths of several sources.
func totals(of map[int]*latencyGrowth) (ttft, tpot map[float64]float64) {
	ttft, tpot = map[float64]float64{}, map[float64]float64{}
	for _, g := range of {
		for bound, n := range g.ttft.sum {
			ttft[bound] += n
		}
		for bound, n := range g.tpot.sum {
			tpot[bound] += n
		}
	}
	return ttft, tpot
}

// quantile interpolates in a bucket, as PromQL does.
func quantile(counts map[float64]float64, q float64) float64 {
	total := counts[math.Inf(1)]
	if total == 0 {
		return math.NaN()
	}
	below, from := 0.0, 0.0
	for _, bound := range sortedBounds(counts) {
		if n := counts[bound]; n >= q*total {
			if math.IsInf(bound, 1) {
				return from
			}
			return from + (bound-from)*(q*total-below)/max(n-below, 1e-9)
		}
		below, from = counts[bound], bound
	}
	return math.NaN()
}

func sortedBounds(counts map[float64]float64) []float64 {
	return slices.Sorted(maps.Keys(counts))
}

// gap returns a quantile of the times of iterations.
func (s *Summary) gap(q float64) float64 {
	total := 0.0
	for _, g := range s.gaps {
		total += g.weight
	}
	sum := 0.0
	for _, g := range s.gaps {
		if sum += g.weight; sum >= q*total {
			return g.value
		}
	}
	return math.NaN()
}

// Bounds returns the bounds of the engines' histograms, or of the gateway's if there are none. A
// simulation that is compared must count by them.
func (s *Summary) Bounds() (ttft, tpot []float64) {
	engineTTFT, engineTPOT := totals(s.engines)
	gatewayTTFT, gatewayTPOT := totals(s.gateways)
	of := func(a, b map[float64]float64) []float64 {
		if len(a) == 0 {
			a = b
		}
		return sortedBounds(a)
	}
	return of(engineTTFT, gatewayTTFT), of(engineTPOT, gatewayTPOT)
}

// Latency counts latencies by bounds, for recordings of a simulation.
type Latency struct {
	bounds []float64
	counts []float64
}

// NewLatency returns a Latency with these bounds, of which the last is infinite.
func NewLatency(bounds []float64) *Latency { return &Latency{bounds, make([]float64, len(bounds))} }

// Observe counts a latency in seconds.
func (l *Latency) Observe(seconds float64) {
	for i, bound := range l.bounds {
		if seconds <= bound {
			l.counts[i]++
		}
	}
}

// Buckets returns the counts so far.
func (l *Latency) Buckets() []flowcontrol.Bucket {
	buckets := make([]flowcontrol.Bucket, len(l.bounds))
	for i := range buckets {
		buckets[i] = flowcontrol.Bucket{Upper: l.bounds[i], Count: l.counts[i]}
	}
	return buckets
}
