package workload

import (
	"time"
)

// Windows are the lengths over which counts of arrivals are compared.
var Windows = []time.Duration{time.Second, 10 * time.Second, time.Minute}

// Dispersion is how uneven arrivals are over windows of one length. Both measures of a Poisson
// process are 1.
type Dispersion struct {
	Window time.Duration
	// VarMean is the variance of the counts divided by their mean. It includes the daily curve.
	VarMean float64
	// AroundRate is the mean square distance of the counts from the counts that the requested rate
	// predicts, divided by that prediction: the dispersion without the daily curve. With a constant
	// rate it is nearly VarMean.
	AroundRate float64
}

// tally counts arrivals.
type tally struct {
	expected func(time.Duration) float64
	windows  []window
	arrivals int
	input    int
	output   int
}

// newTally counts against an expected rate, in requests a second.
func newTally(expected func(time.Duration) float64) *tally {
	t := &tally{expected: expected, windows: make([]window, len(Windows))}
	for i, length := range Windows {
		t.windows[i].length = length
	}
	return t
}

// add counts an arrival, which is not before the last.
func (t *tally) add(a Arrival) {
	t.arrivals++
	t.input += a.Input
	t.output += a.Output
	for i := range t.windows {
		w := &t.windows[i]
		w.advance(a.At, t.expected)
		w.count++
	}
}

// close returns what was counted from 0 to the end. The last window of each length counts only if
// it is complete.
func (t *tally) close(end time.Duration) Statistics {
	s := Statistics{Requests: t.arrivals, Span: end, Rate: float64(t.arrivals) / end.Seconds()}
	if t.arrivals > 0 {
		s.MeanInput = float64(t.input) / float64(t.arrivals)
		s.MeanOutput = float64(t.output) / float64(t.arrivals)
	}
	for i := range t.windows {
		t.windows[i].advance(end, t.expected)
		s.Dispersion = append(s.Dispersion, t.windows[i].dispersion())
	}
	return s
}

// Statistics summarize traffic.
type Statistics struct {
	Requests              int
	Span                  time.Duration
	Rate                  float64 // requests a second
	MeanInput, MeanOutput float64 // tokens
	Dispersion            []Dispersion
}

// Statistics returns those of the trace.
func (t *Trace) Statistics() Statistics {
	return Measure(t.Arrivals(), t.span, func(time.Duration) float64 { return t.Rate() })
}

// Measure reads a stream up to an end and returns its statistics against an expected rate.
func Measure(s Stream, end time.Duration, expected func(time.Duration) float64) Statistics {
	t := newTally(expected)
	for a := range All(Until(s, end)) {
		t.add(a)
	}
	return t.close(end)
}

// window sums up the counts of consecutive windows.
type window struct {
	length time.Duration
	begin  time.Duration
	count  int

	whole     int     // complete windows
	sum       float64 // of counts; they are integers, so it is exact
	squares   float64
	expected  float64
	deviation float64 // squares of count less expectation
}

// advance closes the windows that end by now.
func (w *window) advance(now time.Duration, rate func(time.Duration) float64) {
	for now-w.begin >= w.length {
		n := float64(w.count)
		expected := rate(w.begin+w.length/2) * w.length.Seconds()
		w.whole++
		w.sum += n
		w.squares += n * n
		w.expected += expected
		w.deviation += (n - expected) * (n - expected)
		w.begin += w.length
		w.count = 0
	}
}

func (w *window) dispersion() Dispersion {
	d := Dispersion{Window: w.length}
	if w.sum > 0 {
		mean := w.sum / float64(w.whole)
		d.VarMean = (w.squares/float64(w.whole) - mean*mean) / mean
	}
	if w.expected > 0 {
		d.AroundRate = w.deviation / w.expected
	}
	return d
}
