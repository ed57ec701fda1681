package dispatch

import (
	"sync/atomic"

	"github.com/tidefill/tidefill/store"
)

// chunk is a claimed group of lines of one model, with its open journal.
type chunk struct {
	store.Chunk
	run     *run
	journal store.Journal
	// by slot; those whose result was in the journal when it was opened are never started
	lines []sourceLine

	volatile atomic.Int64 // bytes of results that are not durable yet

	// Owned by the loop.
	inFlight int

	// Guarded by run.mu.
	pending int // lines without a durable result
	tally   store.Tally
	leaving bool // being finished or released
}

// free gives back the memory that the chunk takes. None of its lines is in flight, and its journal
// is closed.
func (c *chunk) free(m *memory) {
	for i := range c.lines {
		c.lines[i].release(&m.inputs)
	}
	c.settled(&m.results, c.volatile.Load())
}

// settled gives back the memory of results that are durable, or lost with their journal.
func (c *chunk) settled(results *share, bytes int64) {
	c.volatile.Add(-bytes)
	results.Give(bytes)
}

// requestsWithoutResult counts the requests of lines that have no result. None is in flight.
func (c *chunk) requestsWithoutResult() (requests int64) {
	for i := range c.lines {
		if !c.lines[i].recorded {
			requests += int64(c.lines[i].requests)
		}
	}
	return requests
}
