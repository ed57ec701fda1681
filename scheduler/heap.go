package scheduler

// heap is a binary heap. It stores the index of each item in the item, so any can be moved or
// removed in O(log n).
type heap[T comparable] struct {
	items  []T
	before func(a, b T) bool
	place  func(T) *int // where an item stores its index in this heap; -1: not in it
}

// top returns the first item. The zero value: the heap is empty.
func (h *heap[T]) top() T {
	if len(h.items) == 0 {
		var none T
		return none
	}
	return h.items[0]
}

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	*h.place(x) = len(h.items) - 1
	h.fix(x)
}

func (h *heap[T]) remove(x T) {
	var none T
	i, last := *h.place(x), len(h.items)-1
	moved := h.items[last]
	h.items[last] = none
	h.items = h.items[:last]
	*h.place(x) = -1
	if moved != x {
		h.set(i, moved)
		h.fix(moved)
	}
}

// fix restores the order after the key of x has changed.
func (h *heap[T]) fix(x T) {
	i := *h.place(x)
	for i > 0 && h.before(x, h.items[(i-1)/2]) {
		h.set(i, h.items[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.before(h.items[child], x) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, x)
}

func (h *heap[T]) set(i int, x T) {
	h.items[i] = x
	*h.place(x) = i
}
