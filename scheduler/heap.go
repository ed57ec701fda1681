package scheduler

// heap is a binary heap of entries. It stores the index of each entry in the entry, so any can be
// moved or removed in O(log n).
type heap struct {
	entries []*entry
	before  func(a, b *entry) bool
	place   func(*entry) *int // where an entry stores its index in this heap; -1: not in it
}

func (h *heap) top() *entry {
	if len(h.entries) == 0 {
		return nil
	}
	return h.entries[0]
}

func (h *heap) push(e *entry) {
	h.entries = append(h.entries, e)
	*h.place(e) = len(h.entries) - 1
	h.fix(e)
}

func (h *heap) remove(e *entry) {
	i, last := *h.place(e), len(h.entries)-1
	moved := h.entries[last]
	h.entries[last] = nil
	h.entries = h.entries[:last]
	*h.place(e) = -1
	if moved != e {
		h.set(i, moved)
		h.fix(moved)
	}
}

// fix restores the order after the key of e has changed.
func (h *heap) fix(e *entry) {
	i := *h.place(e)
	for i > 0 && h.before(e, h.entries[(i-1)/2]) {
		h.set(i, h.entries[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child >= len(h.entries) {
			break
		}
		if child+1 < len(h.entries) && h.before(h.entries[child+1], h.entries[child]) {
			child++
		}
		if !h.before(h.entries[child], e) {
			break
		}
		h.set(i, h.entries[child])
		i = child
	}
	h.set(i, e)
}

func (h *heap) set(i int, e *entry) {
	h.entries[i] = e
	*h.place(e) = i
}
