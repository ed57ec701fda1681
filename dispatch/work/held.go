package work

import (
	"maps"
	"slices"

	"github.com/tidefill/tidefill/store"
)

// heldChunks holds the chunks that a run has claimed. The run's mutex guards it.
type heldChunks struct {
	reading map[int]string           // models of claimed chunks that are not read yet
	ahead   map[string][]store.Chunk // by model; those of them that nobody reads yet
	chunks  map[int]*Chunk           // that were read, by index
	unsaved map[*Chunk]bool          // that are put back and wait for space on the disk
}

func newHeldChunks() heldChunks {
	return heldChunks{reading: map[int]string{}, ahead: map[string][]store.Chunk{},
		chunks: map[int]*Chunk{}, unsaved: map[*Chunk]bool{}}
}

// len returns the number of chunks that are held or being read.
func (h *heldChunks) len() int { return len(h.chunks) + len(h.reading) }

// indexes lists the indexes of these chunks.
func (h *heldChunks) indexes() []int {
	return slices.AppendSeq(slices.Collect(maps.Keys(h.chunks)), maps.Keys(h.reading))
}

// claimed adds chunks of a model that were claimed together. The first of them is read at once.
func (h *heldChunks) claimed(model string, chunks []store.Chunk) {
	for _, c := range chunks {
		h.reading[c.Index] = model
	}
	h.ahead[model] = chunks[1:]
}

// next takes the next of a model's chunks that were claimed ahead; false: there is none.
func (h *heldChunks) next(model string) (c store.Chunk, ok bool) {
	ahead := h.ahead[model]
	if len(ahead) == 0 {
		return c, false
	}
	h.ahead[model] = ahead[1:]
	return ahead[0], true
}

// leaveAhead takes the chunks that were claimed ahead, of the models for which leave returns true.
func (h *heldChunks) leaveAhead(leave func(model string) bool) (left []store.Chunk) {
	for model, chunks := range h.ahead {
		if leave(model) {
			left = append(left, chunks...)
			delete(h.ahead, model)
		}
	}
	return left
}

// allLeave reports whether every chunk is being finished or given back, and none is being read.
func (h *heldChunks) allLeave() bool {
	if len(h.reading) > 0 {
		return false
	}
	for _, c := range h.chunks {
		if !c.leaving {
			return false
		}
	}
	return true
}
