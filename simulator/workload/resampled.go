package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"time"
)

// ResampleConfig configures a resampled trace.
type ResampleConfig struct {
	Trace *Trace
	// Shape of the rate; nil is constant.
	Shape *Curve
	// Rate is what the shape multiplies, in requests a second: the mean rate over the shape's
	// period.
	Rate   float64
	Length time.Duration
	Seed   Seed
	// Name makes resampled traces of one scenario independent.
	Name string
}

// ResampledTrace is traffic of any length and rate made from a shorter trace, which keeps the
// trace's bursts and lengths.
//
// Copies of the trace are overlaid. Each copy repeats the trace, each time rotated by another
// offset, so no two copies rise together and no hour repeats the previous one. Each request of all
// copies is kept with a probability: the requested rate divided by the rate of the copies at its
// time. Time is never stretched and no length is changed. The names of prefixes are kept within a
// copy and differ between copies, so reuse does not cross them.
//
// A report on such traffic should print its [ResampledTrace.Fidelity] and [ResampleNotes].
type ResampledTrace struct {
	cfg    ResampleConfig
	copies int
	first  int // number of the first copy, for the names of prefixes
}

// ResampleNotes are what a reader of results should know of such traffic.
var ResampleNotes = []string{
	"the daily curve and the mix of token lengths come from different services",
	"thinning moves the variance of counts towards that of a Poisson process; compare it with " +
		"the source's",
	"there is no weekly pattern beyond what the rate curve holds",
	"requests that share a tick of the trace are spread over it uniformly, so nothing is known " +
		"of bursts within a tick",
}

// maxCopies bounds the memory and the number of name spaces for prefixes.
const maxCopies = 1 << 15

// maxTraceRate is more requests a second than a pool serves. All of a trace's are drawn to keep a
// few, so one whose requests share a time would take as long as one of a thousand million a second.
const maxTraceRate = 1e6

// NewResampledTrace validates the configuration.
func NewResampledTrace(cfg ResampleConfig) (*ResampledTrace, error) {
	if cfg.Shape == nil {
		cfg.Shape = flat()
	}
	switch {
	case cfg.Trace == nil || cfg.Trace.Len() == 0:
		return nil, fmt.Errorf("resampled trace %q: no source trace", cfg.Name)
	case cfg.Trace.Rate() > maxTraceRate:
		return nil, fmt.Errorf("resampled trace %q: the requests of trace %s all come within %s, "+
			"so it does not show a rate; use a trace of several seconds or more", cfg.Name,
			cfg.Trace.Name(), cfg.Trace.Span())
	case !(cfg.Rate > 0 && cfg.Rate <= maxRate):
		return nil, fmt.Errorf(
			"resampled trace %q: rate is %v requests a second, want a finite number above 0",
			cfg.Name, cfg.Rate)
	case cfg.Length <= 0:
		return nil, fmt.Errorf("resampled trace %q: length is %v, want a time above 0", cfg.Name,
			cfg.Length)
	}
	// The tolerance is for a rate that is an integer number of copies except for rounding.
	copies := math.Ceil(cfg.Rate*cfg.Shape.highest()/cfg.Trace.Rate() - 1e-9)
	if copies > maxCopies {
		return nil, fmt.Errorf(
			"resampled trace %q: %g requests a second need %g copies of trace %s, want at most "+
				"%d; use a busier trace",
			cfg.Name, cfg.Rate, copies, cfg.Trace.Name(), maxCopies)
	}
	return &ResampledTrace{cfg: cfg, copies: max(1, int(copies))}, nil
}

// Copies returns the number of copies of the trace that are overlaid.
func (d *ResampledTrace) Copies() int { return d.copies }

// Rate returns the requested rate at t, in requests a second.
func (d *ResampledTrace) Rate(t time.Duration) float64 { return d.cfg.Rate * d.cfg.Shape.At(t) }

// Arrivals returns the traffic, from the beginning with each call.
func (d *ResampledTrace) Arrivals() Stream {
	copies := make([]Stream, d.copies)
	for i := range copies {
		copies[i] = d.tiledCopy(i)
	}
	return Merge(copies...)
}

// Independent returns traffic of the same kind that is independent of Arrivals and of other
// numbers, for [AddSurges].
func (d *ResampledTrace) Independent(number int) Stream {
	other := *d
	other.cfg.Name = fmt.Sprintf("%s/crowd %d", d.cfg.Name, number)
	other.first = (number + 1) * d.copies
	return other.Arrivals()
}

func (d *ResampledTrace) tiledCopy(i int) Stream {
	// The names of random sequences are part of a seed's meaning: another name gives other
	// traffic.
	name := fmt.Sprintf("day %s/copy %d/", d.cfg.Name, i)
	tiles := &tiles{trace: d.cfg.Trace, rotation: d.cfg.Seed.Rand(name + "rotation")}
	thinning := d.cfg.Seed.Rand(name + "thinning")
	keep := d.cfg.Rate / (float64(d.copies) * d.cfg.Trace.Rate())
	return offsetPrefixes(Until(Func(func() (Arrival, bool) {
		for {
			a := tiles.next()
			// The end has to be seen before the thinning, which may keep
			// nothing any more.
			if a.At >= d.cfg.Length || thinning.Float64() < keep*d.cfg.Shape.At(a.At) {
				return a, true
			}
		}
	}), d.cfg.Length), uint64(d.first+i)<<copyBits)
}

// tiles repeats a trace, each time rotated by another offset.
type tiles struct {
	trace    *Trace
	rotation *rand.Rand
	begin    time.Duration // of the present repetition
	offset   time.Duration
	first    int // index of the first request at or after the offset
	emitted  int // requests of this repetition
	started  bool
}

func (t *tiles) next() Arrival {
	n := t.trace.Len()
	if !t.started || t.emitted == n {
		if t.started {
			t.begin += t.trace.span
		}
		t.started, t.emitted = true, 0
		t.offset = time.Duration(t.rotation.Int64N(int64(t.trace.span)))
		t.first = sort.Search(n, func(i int) bool { return t.trace.arrivals[i].At >= t.offset })
	}
	i := t.first + t.emitted
	t.emitted++
	turn := -t.offset
	if i >= n {
		i -= n
		turn += t.trace.span
	}
	a := t.trace.arrivals[i]
	a.At += t.begin + turn
	return a
}

// Fidelity compares a resampled trace with its source.
type Fidelity struct {
	Copies              int
	Requested, Measured float64 // mean rate, requests a second
	Source, Result      Statistics
}

// Fidelity generates all of the traffic and measures it.
func (d *ResampledTrace) Fidelity() Fidelity {
	result := Measure(d.Arrivals(), d.cfg.Length, d.Rate)
	return Fidelity{
		Copies:    d.copies,
		Requested: d.cfg.Rate * d.cfg.Shape.meanUntil(d.cfg.Length),
		Measured:  result.Rate,
		Source:    d.cfg.Trace.Statistics(),
		Result:    result,
	}
}
