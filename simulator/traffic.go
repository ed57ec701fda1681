package simulator

import (
	"fmt"
	"math"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// trafficBase is the source of requests before the scenario transforms them.
type trafficBase struct {
	arrivals func() workload.Stream
	// the same kind of traffic, independent of arrivals
	independent func(number int) workload.Stream
	rate        func(time.Duration) float64 // requested, requests a second
	meanRate    float64                     // mean of rate over the shape's period
	resampled   *workload.ResampledTrace    // nil: no trace was resampled
}

// trafficBase returns the generator or the trace.
func (s Setup) trafficBase() (trafficBase, error) {
	shape, err := s.shape()
	if err != nil {
		return trafficBase{}, err
	}
	in := s.Scenario.Interactive
	switch {
	case in.Generator == scenario.None || in.Users.Count > 0:
		none := func() workload.Stream {
			return workload.Func(func() (workload.Arrival, bool) {
				return workload.Arrival{}, false
			})
		}
		return trafficBase{arrivals: none}, nil
	case in.Verbatim():
		rate := s.Trace.Rate()
		// A surge is like the trace, but does not repeat it.
		day, err := s.resample(shape, rate)
		if err != nil {
			return trafficBase{}, err
		}
		arrivals := s.Trace.Arrivals
		if in.Retimed() {
			arrivals = s.Trace.Repeated
		}
		return trafficBase{arrivals, day.Independent, func(time.Duration) float64 {
			return rate
		}, rate, nil}, nil
	case s.Trace != nil:
		rate := in.Rate
		if rate == 0 {
			rate = s.Trace.Rate()
		}
		day, err := s.resample(shape, rate)
		if err != nil {
			return trafficBase{}, err
		}
		return trafficBase{day.Arrivals, day.Independent, day.Rate, rate, day}, nil
	}
	population, err := workload.LookupPopulation(in.Generator)
	if err != nil {
		return trafficBase{}, err
	}
	rate := in.Rate
	if rate == 0 {
		rate = population.Rate
	}
	g, err := workload.NewGenerator(workload.GeneratorConfig{Population: population, Shape: shape,
		Rate: rate, Seed: s.seed(), Name: "interactive"})
	if err != nil {
		return trafficBase{}, err
	}
	return trafficBase{g.Arrivals, g.Independent, g.Rate, rate, nil}, nil
}

func (s Setup) resample(shape *workload.Curve, rate float64) (*workload.ResampledTrace, error) {
	length := s.Scenario.Horizon
	if s.Scenario.Interactive.Retimed() {
		// The process of new times may need any number of requests. They are made as they are
		// taken, so those that it does not need cost nothing.
		length *= 1000
	}
	return workload.NewResampledTrace(workload.ResampleConfig{
		Trace: s.Trace, Shape: shape, Rate: rate, Length: length, Seed: s.seed(),
		Name: "interactive",
	})
}

// shape returns the curve of the rate; nil: flat.
func (s Setup) shape() (*workload.Curve, error) {
	const day = 24 * time.Hour
	days := int((s.Scenario.Horizon + day - 1) / day)
	switch rng := s.seed().Rand("shape"); s.Scenario.Interactive.Shape {
	case "":
		return nil, nil
	case scenario.Diurnal:
		return workload.Diurnal(days, rng), nil
	case scenario.Wandering:
		return workload.Wandering(days, rng), nil
	}
	if s.Shape == nil {
		return nil, fmt.Errorf("interactive.shape names the file %s, which was not read",
			s.Scenario.Interactive.Shape)
	}
	return s.Shape, nil
}

// firstClassTraffic returns the arrivals of the first class, from the first with each call.
func (s Setup) firstClassTraffic() (workload.Stream, error) {
	base, err := s.trafficBase()
	if err != nil {
		return nil, err
	}
	return s.transform(base)
}

// Traffic returns the arrivals of all classes that are not closed loops, from the first with each
// call.
func (s Setup) Traffic() (workload.Stream, error) {
	first, err := s.firstClassTraffic()
	if err != nil {
		return nil, err
	}
	streams := []workload.Stream{first}
	for _, c := range s.Scenario.Interactive.Classes {
		if c.Generator == "" || c.Users.Count > 0 {
			continue
		}
		stream, err := s.generate(c, "interactive "+c.Name)
		if err != nil {
			return nil, fmt.Errorf("class %q: %w", c.Name, err)
		}
		streams = append(streams, workload.Until(workload.Label(stream, c.Name),
			s.Scenario.Horizon))
	}
	if len(streams) == 1 {
		return first, nil
	}
	return workload.Merge(streams...), nil
}

// transform applies the scenario's changes to the traffic.
func (s Setup) transform(base trafficBase) (workload.Stream, error) {
	t := s.Scenario.Interactive.Traffic
	cause := s.seed().Rand
	stream := base.arrivals()
	var err error
	if len(t.Surges) > 0 {
		surges := make([]workload.Surge, len(t.Surges))
		for i, x := range t.Surges {
			surges[i] = workload.Surge{From: x.At, Length: x.For, Factor: x.Factor}
		}
		if stream, err = workload.AddSurges(stream, base.independent, cause("surges"),
			surges...); err != nil {
			return nil, err
		}
	}
	if base.rate != nil && t.Retimed() {
		if stream, err = s.retime(stream, base); err != nil {
			return nil, err
		}
	}
	if t.Input.Median > 0 || t.Output.Median > 0 {
		stream = workload.RedrawLengths(stream, t.Input.Workload(), t.Output.Workload(),
			cause("lengths"))
	}
	if g := t.Growth; g.Factor > 0 {
		stream = workload.ScalePrompts(stream, workload.Ramp{From: g.From, To: g.To, Before: 1,
			After: g.Factor})
	}
	if p := t.Prefix; p.Share > 0 {
		stream = workload.SharePrefixes(stream, p.Share, max(1, p.Groups), cause("prefixes"))
	}
	if c := t.ColdCache; c.Share > 0 {
		stream = workload.DropPrefixes(stream, workload.Ramp{From: c.From, To: c.To,
			After: c.Share},
			cause("chill"))
	}
	return workload.Until(stream, s.Scenario.Horizon), nil
}

// retime draws new times for requests.
func (s Setup) retime(stream workload.Stream, base trafficBase) (workload.Stream, error) {
	bursts, err := s.bursts()
	if err != nil {
		return nil, err
	}
	t := workload.Timing{Rate: s.requestedRate(base), Reference: base.meanRate, VarMean: 1,
		Window: poissonWindow, Bursts: bursts}
	if d := s.Scenario.Interactive.Dispersion; d.VarMean > 0 {
		t.VarMean, t.Window = d.VarMean, d.Window
	}
	return workload.Retime(stream, t, s.seed().Rand("dispersion"))
}

// poissonWindow is the time over which the rate of bursts without dispersion is taken from the
// shape at once.
const poissonWindow = time.Second

// bursts returns the scenario's, the same with each call; nil: there are none.
func (s Setup) bursts() (*workload.Bursts, error) {
	b := s.Scenario.Interactive.Bursts
	if b.Factor == 0 {
		return nil, nil
	}
	return workload.NewBursts(b.Factor, b.Length, b.Gap, s.seed().Rand("bursts"))
}

// requestedRate returns the rate with surges, in requests a second.
func (s Setup) requestedRate(base trafficBase) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		factor := 1.0
		for _, x := range s.Scenario.Interactive.Surges {
			if t >= x.At && t < x.At+x.For {
				factor += x.Factor - 1
			}
		}
		return factor * base.rate(t)
	}
}

// TrafficSummary compares interactive traffic with the trace that it was made from.
type TrafficSummary struct {
	// Rate is the mean that was requested, in requests a second, without surges.
	Rate float64
	// Result is measured on the traffic.
	Result workload.Statistics
	// Source is the trace it was made from; nil: there is none.
	Source *workload.Statistics
	// Copies is the number of copies of the trace that are overlaid; 0: it is played back once,
	// unchanged.
	Copies int
	// Notes are what a reader of results should know of such traffic.
	Notes []string
}

// SummarizeTraffic generates the interactive traffic of the scenario and measures it.
func (s Setup) SummarizeTraffic() (TrafficSummary, error) {
	base, err := s.trafficBase()
	if err != nil || base.rate == nil {
		return TrafficSummary{}, err
	}
	stream, err := s.transform(base)
	if err != nil {
		return TrafficSummary{}, err
	}
	summary := TrafficSummary{Rate: s.meanRate(base), Result: workload.Measure(stream,
		s.Scenario.Horizon,
		s.requestedRate(base))}
	if s.Trace != nil {
		statistics := s.Trace.Statistics()
		summary.Source = &statistics
	}
	if base.resampled != nil {
		summary.Copies, summary.Notes = base.resampled.Copies(), workload.ResampleNotes
	}
	if s.Scenario.Interactive.Growth.Factor > 0 {
		summary.Notes = append(summary.Notes[:len(summary.Notes):len(summary.Notes)],
			"prompts grow on the way, so their lengths are not the source's")
	}
	return summary, nil
}

// meanRate returns the mean of the requested rate over the horizon.
func (s Setup) meanRate(base trafficBase) float64 {
	const parts = 1000
	sum := 0.0
	for i := range parts {
		sum += base.rate(s.Scenario.Horizon / parts * time.Duration(i))
	}
	return math.Round(sum/parts*1e6) / 1e6
}

// WithTraffic adapts the scenario to a trace that replaces its own traffic. Its rate, shape and
// surges stay; the lengths and the closed loop of a generator are removed. A trace that is too
// short to be played back once, or gets bursts, is repeated at its own rate.
func (s Setup) WithTraffic() Setup {
	in := &s.Scenario.Interactive
	in.Input, in.Output, in.Users = scenario.Length{}, scenario.Length{}, scenario.Users{}
	if in.Verbatim() && (s.Trace.Span() < s.Scenario.Horizon || in.Bursts.Factor > 0) {
		in.Rate = s.Trace.Rate()
	}
	return s
}
