package workload

import (
	"iter"
	"time"
)

// Request is one request to an engine.
type Request struct {
	Input int // prompt tokens, at least 1
	// tokens it will produce, at least 1; only the engine may know it
	Output int

	// Prefix names the leading segments of the prompt, each Segment tokens long; the last may
	// extend beyond the prompt's end. Two prompts share as many leading tokens as their names agree
	// on. A name identifies its segment and all before it, so it is always at the same position.
	Prefix  []uint64
	Segment int
}

// Arrival is an interactive request and its time.
type Arrival struct {
	At    time.Duration // since the stream's beginning
	Class string        // of traffic, if there are several; each has an SLO
	Request
}

// Stream yields arrivals in order of time until Next returns false. After that it returns false
// always.
type Stream interface {
	Next() (Arrival, bool)
}

// Func is a stream made of its Next function.
type Func func() (Arrival, bool)

// Next returns the next arrival.
func (f Func) Next() (Arrival, bool) { return f() }

// All iterates over the rest of a stream.
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

// Blocks appends to dst the hashes of the prompt's leading full blocks of size tokens, as far as
// its prefix is named. Requests whose names agree over a block and all before it have the same hash
// there, whatever the length of their segments.
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

// Affinity returns the weight of a place for prompts with this beginning; false: the prompt has no
// named one. Prompts that go to the place with the largest weight meet those with the same
// beginning, and few of them move when places are added or removed. The first segment does not
// count where there are more, since it is often a system prompt that all share.
func (r Request) Affinity(place int) (weight uint64, ok bool) {
	if len(r.Prefix) == 0 {
		return 0, false
	}
	return mix(r.Prefix[min(1, len(r.Prefix)-1)] + mix(uint64(place))), true
}
