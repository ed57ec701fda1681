package work

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/tracing"
)

// Chunk is a claimed group of lines of one model, with its open journal.
type Chunk struct {
	store.Chunk
	Run     *Run
	Journal store.Journal
	Span    *tracing.Chunk // nil: traces are off
	// by slot; those whose result was in the journal when it was opened are never started
	lines []Line

	volatile atomic.Int64 // bytes of results that are not durable yet

	// InFlight is the number of lines in flight. The loop owns it.
	InFlight int

	// The run's mutex guards these.
	pending int // lines without a durable result
	tally   store.Tally
	leaving bool // being finished or released
}

// NewChunk returns a chunk that a run has claimed, with its lines.
func NewChunk(r *Run, claimed store.Chunk, lines []Line) *Chunk {
	return &Chunk{Chunk: claimed, Run: r, lines: lines, pending: len(lines)}
}

// JournalOpener opens journals.
type JournalOpener interface {
	Open(ctx context.Context, id store.ChunkID, epoch int64, replay func(store.Record),
		committed func(store.Commit)) (store.Journal, error)
}

// Open opens the chunk's journal and counts the results in it. committed receives those that come.
func (c *Chunk) Open(
	ctx context.Context, journals JournalOpener, committed func(store.Commit),
) (err error) {
	slotOf := make(map[uint32]int, len(c.lines))
	for slot := range c.lines {
		slotOf[c.lines[slot].number] = slot
	}
	replay := func(rec store.Record) {
		if slot, known := slotOf[rec.Line]; known && !c.lines[slot].earlier {
			c.lines[slot].earlier = true
			c.pending--
			c.tally = Plus(c.tally, TallyOf(rec))
		}
	}
	if c.Journal, err = journals.Open(ctx, c.ChunkID, c.Epoch, replay, committed); err != nil {
		return fmt.Errorf("open journal of chunk %d: %w", c.Index, err)
	}
	return nil
}

// Fetch reads the lines without a result, and returns them for the planner.
func (c *Chunk) Fetch(inputs *Share) ([]plan.Line, error) {
	err := fetch(c.lines, inputs, func(slot int) bool { return !c.lines[slot].earlier })
	if err != nil {
		return nil, err
	}
	todo := make([]plan.Line, 0, c.pending)
	for slot := range c.lines {
		if l := &c.lines[slot]; !l.earlier {
			todo = append(todo, plan.Line{
				Slot: slot, PromptTokens: int(float64(l.index.PromptBytes)/bytesPerToken) + 1,
				MaxTokens: int(l.index.MaxTokens),
			})
		}
	}
	return todo, nil
}

// Free gives back the memory that the chunk takes. None of its lines is in flight, and its journal
// is closed.
func (c *Chunk) Free(m *Memory) {
	for i := range c.lines {
		c.lines[i].release(&m.Inputs)
	}
	c.Settled(&m.Results, c.volatile.Load())
}

// Wrote counts the bytes of a result that was given to the journal.
func (c *Chunk) Wrote(bytes int64) { c.volatile.Add(bytes) }

// Settled gives back the memory of results that are durable, or lost with their journal.
func (c *Chunk) Settled(results *Share, bytes int64) {
	c.volatile.Add(-bytes)
	results.Give(bytes)
}

// RequestsWithoutResult counts the requests of lines that have no result. None is in flight.
func (c *Chunk) RequestsWithoutResult() (requests int64) {
	for i := range c.lines {
		if !c.lines[i].recorded {
			requests += int64(c.lines[i].requests)
		}
	}
	return requests
}
