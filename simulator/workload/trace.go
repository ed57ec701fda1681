package workload

import (
	"fmt"
	"iter"
	"time"
)

// Trace is a recorded or generated stretch of traffic, held in memory (about 100
// bytes a request and 8 a prefix name), since a day is made of many looks at it.
// It doesn't change.
type Trace struct {
	name     string
	arrivals []Arrival
	span     time.Duration
}

// Collect reads a trace to its end. The name goes into errors and reports.
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

// Name is what the trace was called when it was read.
func (t *Trace) Name() string { return t.name }

// Len is the number of requests.
func (t *Trace) Len() int { return len(t.arrivals) }

// Span is the time from the first request to where the first would come again.
func (t *Trace) Span() time.Duration { return t.span }

// Rate is the mean, in requests a second.
func (t *Trace) Rate() float64 { return float64(len(t.arrivals)) / t.span.Seconds() }

// Arrivals tells the trace once, as it was.
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
