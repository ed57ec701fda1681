package engine

import "container/heap"

// waiting is a heap of sequences in the order of admission. A preempted sequence keeps its order of
// submission, so it goes before later ones of the same priority.
type waiting []*sequence

func (w waiting) Len() int           { return len(w) }
func (w waiting) Less(i, j int) bool { return w[i].before(w[j]) }

func (w waiting) Swap(i, j int) {
	w[i], w[j] = w[j], w[i]
	w[i].slot, w[j].slot = i, j
}

func (w *waiting) Push(x any) {
	s := x.(*sequence)
	s.slot = len(*w)
	*w = append(*w, s)
}

func (w *waiting) Pop() any {
	last := len(*w) - 1
	s := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	s.slot = -1
	return s
}

func (w *waiting) add(s *sequence)    { heap.Push(w, s) }
func (w *waiting) remove(s *sequence) { heap.Remove(w, s.slot) }
