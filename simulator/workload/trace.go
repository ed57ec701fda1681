package workload

import (
	"fmt"
	"iter"
	"time"
)

// Trace is recorded or generated traffic in memory (about 100 bytes a request and 8 a prefix name),
// since a resampled trace reads it many times. It is immutable.
type Trace struct {
	name     string
	arrivals []Arrival
	span     time.Duration
}

// Collect reads a trace to its end. The name is for errors and reports.
func Collect(name string, arrivals iter.Seq2[Arrival, error]) (*Trace, error) {
	t := &Trace{name: name}
	for a, err := range arrivals {
		if err != nil {
			return nil, err
		}
		t.arrivals = append(t.arrivals, a)
	}
	if len(t.arrivals) == 0 {
		return nil, fmt.Errorf("%s: the trace holds no request", name)
	}
	begin := t.arrivals[0].At
	for i := range t.arrivals {
		t.arrivals[i].At -= begin
	}
	// The span ends one mean gap after the last request, so that a repetition
	// keeps the rate.
	last := t.arrivals[len(t.arrivals)-1].At
	gaps := time.Duration(max(1, len(t.arrivals)-1))
	t.span = last + max(last/gaps, 1)
	return t, nil
}

// NewTrace returns traffic of a known time: the arrivals in the order of their times, from 0 to the
// end of the span, which may begin and end with silence. The name is for errors and reports.
func NewTrace(name string, arrivals []Arrival, span time.Duration) (*Trace, error) {
	if len(arrivals) == 0 {
		return nil, fmt.Errorf("%s: the trace holds no request", name)
	}
	last := time.Duration(0)
	for i, a := range arrivals {
		if a.At < last || a.At > span {
			return nil, fmt.Errorf("%s: request %d is at %s, want a time from the previous one, "+
				"%s, to the end of the trace, %s", name, i+1, a.At, last, span)
		}
		last = a.At
	}
	return &Trace{name: name, arrivals: arrivals, span: max(span, 1)}, nil
}

// Name returns the trace's name.
func (t *Trace) Name() string { return t.name }

// Len returns the number of requests.
func (t *Trace) Len() int { return len(t.arrivals) }

// Span returns the time after which the trace would repeat itself: what NewTrace was given or, of a
// trace that was read, the time from the first request to the one that would repeat it.
func (t *Trace) Span() time.Duration { return t.span }

// Rate returns the mean, in requests a second.
func (t *Trace) Rate() float64 { return float64(len(t.arrivals)) / t.span.Seconds() }

// Repeated plays the trace back again and again, one span after the other.
func (t *Trace) Repeated() Stream {
	i, begin := 0, time.Duration(0)
	return Func(func() (Arrival, bool) {
		if i == len(t.arrivals) {
			i, begin = 0, begin+t.span
		}
		a := t.arrivals[i]
		a.At += begin
		i++
		return a, true
	})
}

// Arrivals plays the trace back once.
func (t *Trace) Arrivals() Stream {
	i := 0
	return Func(func() (Arrival, bool) {
		if i == len(t.arrivals) {
			return Arrival{}, false
		}
		i++
		return t.arrivals[i-1], true
	})
}
