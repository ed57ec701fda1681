package recording

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Day is what a recording amounts to: what can be measured of it, and compared with another's. Its
// zero value is a day of which nothing has been told yet.
type Day struct {
	From, To float64 // seconds; only entries between them were told
	begun    bool

	running   map[int]*level // by runner
	waiting   map[int]*level
	harvested int64 // tokens of lines answered
	first     []float64
	gaps      []weighted
	engines   map[int]*grown // by runner
	gateways  map[int]*grown // by model
}

// level is a figure that stands until it is told anew.
type level struct {
	sum, told    float64 // told seconds, over which the sum is taken
	value, since float64
	known        bool
}

// weighted is a figure that counts so many times.
type weighted struct{ value, weight float64 }

// grown is by how much two histograms have grown.
type grown struct{ ttft, tpot growth }

// growth is how often each edge was stayed below since the first look. A restart begins anew and
// loses what came between.
type growth struct {
	last Histogram
	sum  map[float64]float64
}

// Add tells the next entry.
func (d *Day) Add(e Entry) {
	if !d.begun {
		d.begun, d.From = true, e.At
		d.running, d.waiting = map[int]*level{}, map[int]*level{}
		d.engines, d.gateways = map[int]*grown{}, map[int]*grown{}
	}
	d.To = e.At
	switch {
	case e.Reading != nil && e.Reading.Source == "metrics":
		set(d.running, e.Reading.Runner, e.At, e.Reading.Running)
		set(d.waiting, e.Reading.Runner, e.At, e.Reading.Waiting)
	case e.Line != nil:
		if e.Line.End == "succeeded" {
			d.harvested += int64(e.Line.Prompt) + int64(e.Line.Output)
		}
		if e.Line.First > 0 {
			d.first = append(d.first, e.Line.First)
		}
	case e.Gaps != nil:
		d.gaps = append(d.gaps, weighted{e.Gaps.Took / float64(e.Gaps.Count),
			float64(e.Gaps.Count)})
	case e.Latencies != nil:
		of, key := d.engines, e.Latencies.Runner
		if key == 0 {
			of, key = d.gateways, e.Latencies.Model
		}
		if of[key] == nil {
			of[key] = &grown{}
		}
		of[key].ttft.add(e.Latencies.TTFT)
		of[key].tpot.add(e.Latencies.TPOT)
	}
}

func set(of map[int]*level, runner int, at float64, value Number) {
	l := of[runner]
	if l == nil {
		l = &level{}
		of[runner] = l
	}
	if l.known {
		l.sum, l.told = l.sum+l.value*(at-l.since), l.told+at-l.since
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
			g.sum[edge(h[i])] += max(0, h[i][1]-g.last[i][1])
		}
	}
	g.last = h
}

func edge(pair [2]float64) float64 {
	if pair[0] < 0 {
		return math.Inf(1)
	}
	return pair[0]
}

// Figure is one measure of a day; NaN: the recording doesn't tell.
type Figure struct {
	Name, Unit string
	Value      float64
}

// Figures are a day's, always the same in the same order.
func (d *Day) Figures() []Figure {
	figures := []Figure{
		{"requests running, all runners", "", mean(d.running)},
		{"requests waiting, all runners", "", mean(d.waiting)},
		{"harvest", "tokens/s", d.perSecond(float64(d.harvested))},
	}
	quantiles := func(name, unit string, of func(q float64) float64) {
		for _, q := range []struct {
			name  string
			share float64
		}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}} {
			figures = append(figures, Figure{name + " " + q.name, unit, of(q.share)})
		}
	}
	engineTTFT, engineTPOT := totals(d.engines)
	ttft, tpot := totals(d.gateways)
	quantiles("interactive TTFT", "s", func(q float64) float64 { return quantile(ttft, q) })
	quantiles("interactive TPOT", "s", func(q float64) float64 { return quantile(tpot, q) })
	quantiles("TTFT of all requests", "s", func(q float64) float64 {
		return quantile(engineTTFT, q)
	})
	quantiles("TPOT of all requests", "s", func(q float64) float64 {
		return quantile(engineTPOT, q)
	})
	slices.Sort(d.first)
	quantiles("TTFT of batch lines", "s", func(q float64) float64 {
		if len(d.first) == 0 {
			return math.NaN()
		}
		return d.first[min(len(d.first)-1, int(q*float64(len(d.first))))]
	})
	slices.SortFunc(d.gaps, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	quantiles("iteration, mean of a second", "s", d.gap)
	return figures
}

func (d *Day) perSecond(sum float64) float64 {
	if d.To <= d.From {
		return math.NaN()
	}
	return sum / (d.To - d.From)
}

// mean adds up the runners' mean levels over the time that each was told.
func mean(of map[int]*level) float64 {
	sum, some := 0.0, false
	for _, runner := range slices.Sorted(maps.Keys(of)) {
		if l := of[runner]; l.told > 0 {
			sum, some = sum+l.sum/l.told, true
		}
	}
	if !some {
		return math.NaN()
	}
	return sum
}

// totals adds up the growths of several sources.
func totals(of map[int]*grown) (ttft, tpot map[float64]float64) {
	ttft, tpot = map[float64]float64{}, map[float64]float64{}
	for _, g := range of {
		for edge, n := range g.ttft.sum {
			ttft[edge] += n
		}
		for edge, n := range g.tpot.sum {
			tpot[edge] += n
		}
	}
	return ttft, tpot
}

// quantile interpolates within a bucket, as PromQL does.
func quantile(counts map[float64]float64, q float64) float64 {
	total := counts[math.Inf(1)]
	if total == 0 {
		return math.NaN()
	}
	below, from := 0.0, 0.0
	for _, edge := range sortedEdges(counts) {
		if n := counts[edge]; n >= q*total {
			if math.IsInf(edge, 1) {
				return from
			}
			return from + (edge-from)*(q*total-below)/max(n-below, 1e-9)
		}
		below, from = counts[edge], edge
	}
	return math.NaN()
}

func sortedEdges(counts map[float64]float64) []float64 {
	return slices.Sorted(maps.Keys(counts))
}

// gap is a quantile over iterations.
func (d *Day) gap(q float64) float64 {
	total := 0.0
	for _, g := range d.gaps {
		total += g.weight
	}
	sum := 0.0
	for _, g := range d.gaps {
		if sum += g.weight; sum >= q*total {
			return g.value
		}
	}
	return math.NaN()
}

// Edges are those of the engines' histograms, or of the gateway's where there are no others: what a
// day to compare with must count by.
func (d *Day) Edges() (ttft, tpot []float64) {
	engineTTFT, engineTPOT := totals(d.engines)
	gatewayTTFT, gatewayTPOT := totals(d.gateways)
	of := func(a, b map[float64]float64) []float64 {
		if len(a) == 0 {
			a = b
		}
		return sortedEdges(a)
	}
	return of(engineTTFT, gatewayTTFT), of(engineTPOT, gatewayTPOT)
}

// Latency counts latencies by edges; for those who make entries of a simulated day.
type Latency struct {
	edges  []float64
	counts []float64
}

// NewLatency counts by these edges, the last of which is infinite.
func NewLatency(edges []float64) *Latency { return &Latency{edges, make([]float64, len(edges))} }

// Observe counts one, in seconds.
func (l *Latency) Observe(seconds float64) {
	for i, edge := range l.edges {
		if seconds <= edge {
			l.counts[i]++
		}
	}
}

// Buckets are the counts so far.
func (l *Latency) Buckets() []flowcontrol.Bucket {
	buckets := make([]flowcontrol.Bucket, len(l.edges))
	for i := range buckets {
		buckets[i] = flowcontrol.Bucket{Upper: l.edges[i], Count: l.counts[i]}
	}
	return buckets
}
