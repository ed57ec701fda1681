package engine

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// Filler adds work to iterations from inside the engine. It chooses the work for each iteration,
// and the work is dropped from the next at no cost. It uses no slot and no KV block of the
// requests. No real engine offers that; it is a bound for what a gateway outside can do.
type Filler interface {
	// Fill returns what to add to an iteration that has been scheduled. Without requests the
	// iteration consists of that alone, and begins only if there is any. The argument and the
	// result are valid until the next call.
	Fill(now time.Time, s *Scheduled) Filling
	// Filled reports the end of the iteration that was filled last.
	Filled(end time.Time)
}

// Scheduled is an iteration before it is filled, with the complete state of the engine.
type Scheduled struct {
	Tokens, Context int     // as in costmodel.Model.Iteration
	Prefill         float64 // milliseconds, as in costmodel.Model.Iteration
	Pace            float64 // factor of the time by the cost model
	// Free capacity: tokens of the budget, slots, and tokens of KV.
	FreeTokens, FreeSeqs, FreeKV int
	// Streams lists the requests inside, waiting ones included.
	Streams []Stream
}

// Stream is a request, with its future output.
type Stream struct {
	ID                    ID
	Submitted, FirstToken time.Time // FirstToken zero: no token yet
	Prompt, Output        int
	Produced              int
	Uncomputed            int // known tokens that must be computed before the next token
}

// Filling is the work added to an iteration.
type Filling struct {
	Decoding, Context int // requests that decode, and the sum of their contexts
	Chunks            []costmodel.Chunk
}

// SetFiller sets the filler of the iterations that begin from now on. Nil: none.
func (e *Engine) SetFiller(f Filler) { e.filler = f }

// fill adds the filler's work to an iteration of the given requests, tokens, context and prefill,
// and returns the sums.
func (e *Engine) fill(
	now time.Time, requests, tokens, context int, prefill float64,
) (int, int, int, float64) {
	s := &e.scheduled
	*s = Scheduled{
		Tokens: tokens, Context: context, Prefill: prefill, Pace: e.pace,
		FreeTokens: e.cfg.Profile.MaxBatchedTokens - tokens,
		FreeSeqs:   e.cfg.Profile.MaxSeqs - len(e.running),
		FreeKV:     e.kv.available() * BlockSize,
		Streams:    s.Streams[:0],
	}
	for _, q := range e.running {
		s.add(q)
	}
	for _, q := range e.waiting {
		s.add(q)
	}
	added := e.filler.Fill(now, s)
	e.filled = added.Decoding > 0 || len(added.Chunks) > 0
	requests += added.Decoding + len(added.Chunks)
	tokens += added.Decoding
	context += added.Context
	for _, c := range added.Chunks {
		tokens += c.Tokens
		prefill += e.cfg.Profile.CostModel.Prefill(c)
	}
	return requests, tokens, context, prefill
}

func (s *Scheduled) add(q *sequence) {
	s.Streams = append(s.Streams, Stream{
		ID: q.ID, Submitted: q.submitted, FirstToken: q.firstToken, Prompt: q.Prompt,
		Output: q.Output, Produced: q.produced,
		Uncomputed: q.known - q.computed,
	})
}
