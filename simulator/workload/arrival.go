package workload

import (
	"iter"
	"time"
)

// Request is what one request asks of an engine.
type Request struct {
	Input int // prompt tokens, at least 1
	// tokens it will produce, at least 1; the truth about the future, for the engine alone
	Output int

	// Prefix names the leading segments of the prompt, each Segment tokens long;
	// the last may reach beyond the prompt's end. Two prompts share as many
	// leading tokens as their names agree on. A name stands for its segment and
	// all before it, so it always stands in the same place.
	Prefix  []uint64
	Segment int
}

// Arrival is a request of interactive traffic and when it comes.
type Arrival struct {
	At    time.Duration // since the stream's beginning
	Class string        // of traffic, when there are several; what an SLO is tied to
	Request
}

// Stream gives arrivals in order of time, until it says false; after that it
// says false for ever.
type Stream interface {
	Next() (Arrival, bool)
}

// Func is a stream made of its Next.
type Func func() (Arrival, bool)

// Next pulls one arrival.
func (f Func) Next() (Arrival, bool) { return f() }

// All ranges over what is left of a stream.
func All(s Stream) iter.Seq[Arrival] {
	return func(yield func(Arrival) bool) {
		for {
			a, ok := s.Next()
			if !ok || !yield(a) {
				return
			}
		}
	}
}

// Blocks appends to dst the hashes of the prompt's leading full blocks of size
// tokens, as far as its prefix is named. Requests whose names agree over a block
// and all before it have the same hash there, whatever their segments are.
func (r Request) Blocks(dst []uint64, size int) []uint64 {
	if len(r.Prefix) == 0 || r.Segment < 1 {
		return dst
	}
	named := r.Input
	if len(r.Prefix) <= r.Input/r.Segment { // the product cannot overflow
		named = len(r.Prefix) * r.Segment
	}
	for end := size; end <= named; end += size {
		name := r.Prefix[(end-1)/r.Segment]
		dst = append(dst, mix(name+mix(uint64(end))))
	}
	return dst
}
