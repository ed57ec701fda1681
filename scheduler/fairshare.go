package scheduler

import (
	"math"

	"github.com/tidefill/tidefill/internal/heap"
)

// fairShare divides work between flows: the tenants of a class, or the jobs of a tenant. Every flow
// has a virtual time, its work divided by its weight, and the one that is furthest behind goes
// next. A new flow starts where the last one is, so it is owed nothing of what others got before.
//
// Virtual time is counted in rounds of a quantum. In a round the flows go one after the other, in
// an order that the owner gives, such as by deadline, and each until the round is over for it. So
// lines with a common prefix start together. Young flows, which have got little work so far, do not
// wait: they go first, line by line, while they are less than a quantum ahead. So a few lines start
// at once, however large the flows beside them are. No flow leads another one by more than two
// quanta and a line.
//
// A flow without a job to offer (parked) keeps its virtual time, but gets at most a quantum of what
// it missed. So a pause between two chunks costs nothing, and a long pause saves nothing up.
//
// With a quantum of 0 there are neither rounds nor young flows.
type fairShare[T any] struct {
	quantum float64
	young   heap.Heap[*flow[T]] // offered flows that are young
	settled heap.Heap[*flow[T]] // other offered flows

	now float64 // virtual time of the flow that was last, at the latest charge
}

// flow is a tenant or a job, with its share of the work.
type flow[T any] struct {
	item    T
	weight  float64
	time    float64 // virtual: work divided by weight
	served  float64 // virtual time since it joined
	eager   bool    // young whatever it has got
	offered bool
	young   bool // in the heap of young flows
	index   int  // in its heap; -1: not offered
}

// youngShare is the share of a quantum for which a flow is young: with the default quantum, 10
// seconds of one engine, some hundred short lines. Young flows alternate with every line, so a
// larger share costs prefix hits where many jobs begin together.
const youngShare = 0.05

// newFairShare returns a fairShare. before orders flows within a round, and young flows with the
// same virtual time.
func newFairShare[T any](quantum float64, before func(a, b T) bool) fairShare[T] {
	ordered := func(behind func(*flow[T]) float64) heap.Heap[*flow[T]] {
		return heap.Heap[*flow[T]]{
			Before: func(a, b *flow[T]) bool {
				if x, y := behind(a), behind(b); x != y {
					return x < y
				}
				return before(a.item, b.item)
			},
			Place: func(f *flow[T]) *int { return &f.index },
		}
	}
	byTime := ordered(func(f *flow[T]) float64 { return f.time })
	if quantum == 0 {
		return fairShare[T]{young: byTime, settled: byTime}
	}
	byRound := ordered(func(f *flow[T]) float64 { return math.Floor(f.time / quantum) })
	return fairShare[T]{quantum: quantum, young: byTime, settled: byRound}
}

// join initializes a flow, which is not offered yet.
func (s *fairShare[T]) join(f *flow[T], item T, weight float64) {
	*f = flow[T]{item: item, weight: weight, time: s.now, index: -1}
}

// rejoin makes a flow a new one again, except that work beyond that of the others still counts.
func (s *fairShare[T]) rejoin(f *flow[T]) { f.time, f.served = max(f.time, s.now), 0 }

// offer makes a flow available to top.
func (s *fairShare[T]) offer(f *flow[T]) {
	f.time = max(f.time, s.now-s.quantum)
	f.offered = true
	s.push(f)
}

// withdraw undoes offer.
func (s *fairShare[T]) withdraw(f *flow[T]) {
	s.remove(f)
	f.offered = false
}

// fix restores the order after a change of an offered flow.
func (s *fairShare[T]) fix(f *flow[T]) {
	s.remove(f)
	s.push(f)
}

func (s *fairShare[T]) push(f *flow[T]) {
	f.young = f.eager || f.served < youngShare*s.quantum
	s.heapOf(f).Push(f)
}

func (s *fairShare[T]) remove(f *flow[T]) { s.heapOf(f).Remove(f) }

func (s *fairShare[T]) heapOf(f *flow[T]) *heap.Heap[*flow[T]] {
	if f.young {
		return &s.young
	}
	return &s.settled
}

// top returns the flow that goes next. Nil: none is offered.
func (s *fairShare[T]) top() *flow[T] {
	young, settled := s.young.Top(), s.settled.Top()
	if settled == nil || young != nil && young.time < settled.time+s.quantum {
		return young
	}
	return settled
}

// charge adds work to a flow.
func (s *fairShare[T]) charge(f *flow[T], work float64) {
	if !f.offered {
		f.time += work / f.weight
		f.served += work / f.weight
		return
	}
	s.now = max(s.now, s.last())
	s.remove(f)
	f.time += work / f.weight
	f.served += work / f.weight
	s.push(f)
}

// last returns the virtual time of an offered flow in the round that is furthest behind.
func (s *fairShare[T]) last() float64 {
	young, settled := s.young.Top(), s.settled.Top()
	switch {
	case young == nil:
		return settled.time
	case settled == nil:
		return young.time
	}
	return min(young.time, settled.time)
}
