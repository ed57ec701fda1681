// Package heap holds items in an order, of which the first one is at hand.
package heap

// Heap is a binary heap. It stores the index of each item in the item, so any can be moved or
// removed in O(log n). Set both functions before use.
type Heap[T comparable] struct {
	// Before reports whether a goes before b. The order must be total.
	Before func(a, b T) bool
	// Place returns where an item stores its index in this heap; -1: not in it. The owner of the
	// item sets -1 first.
	Place func(T) *int

	items []T
}

// Top returns the first item. The zero value: the heap is empty.
func (h *Heap[T]) Top() T {
	if len(h.items) == 0 {
		var none T
		return none
	}
	return h.items[0]
}

// Push adds an item.
func (h *Heap[T]) Push(x T) {
	h.items = append(h.items, x)
	*h.Place(x) = len(h.items) - 1
	h.Fix(x)
}

// Remove removes an item of the heap.
func (h *Heap[T]) Remove(x T) {
	var none T
	i, last := *h.Place(x), len(h.items)-1
	moved := h.items[last]
	h.items[last] = none
	h.items = h.items[:last]
	*h.Place(x) = -1
	if moved != x {
		h.set(i, moved)
		h.Fix(moved)
	}
}

// Fix restores the order after the key of an item of the heap has changed.
func (h *Heap[T]) Fix(x T) {
	i := *h.Place(x)
	for i > 0 && h.Before(x, h.items[(i-1)/2]) {
		h.set(i, h.items[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if child+1 < len(h.items) && h.Before(h.items[child+1], h.items[child]) {
			child++
		}
		if !h.Before(h.items[child], x) {
			break
		}
		h.set(i, h.items[child])
		i = child
	}
	h.set(i, x)
}

func (h *Heap[T]) set(i int, x T) {
	h.items[i] = x
	*h.Place(x) = i
}
