package workload

import "container/heap"

// Merge merges streams in order of time; at the same instant, in the order given.
func Merge(streams ...Stream) Stream {
	m := &merged{}
	for i, s := range streams {
		if a, ok := s.Next(); ok {
			m.heads = append(m.heads, head{a, i, s})
		}
	}
	heap.Init(&m.heads)
	return m
}

type merged struct{ heads heads }

// head is the next arrival of one of the streams.
type head struct {
	Arrival
	order int
	rest  Stream
}

// Next returns the earliest arrival.
func (m *merged) Next() (Arrival, bool) {
	if len(m.heads) == 0 {
		return Arrival{}, false
	}
	first := &m.heads[0]
	earliest := first.Arrival
	if next, ok := first.rest.Next(); ok {
		first.Arrival = next
		heap.Fix(&m.heads, 0)
	} else {
		heap.Pop(&m.heads)
	}
	return earliest, true
}

type heads []head

func (h heads) Len() int { return len(h) }
func (h heads) Less(i, j int) bool {
	if h[i].At != h[j].At {
		return h[i].At < h[j].At
	}
	return h[i].order < h[j].order
}
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(head)) }
func (h *heads) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
