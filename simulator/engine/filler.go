package engine

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// Filler adds work to iterations from inside the engine, where no gateway
// reaches: what runs there is chosen anew for each iteration and dropped from
// the next at no loss. It takes no slot and no KV block from the requests. That
// is no engine anyone can buy; it is the measure for what is done from outside.
type Filler interface {
	// Fill is asked when an iteration has been scheduled and says what to add to
	// it. Without requests the iteration is the filler's alone; it begins only if
	// something is added. What it is given, and what it returns, holds until the
	// next call.
	Fill(now time.Time, s *Scheduled) Filling
	// Filled says when the iteration that was filled last has ended.
	Filled(end time.Time)
}

// Scheduled is an iteration before it is filled, with all that the engine knows.
type Scheduled struct {
	Tokens, Context int     // as in Law
	Prefill         float64 // milliseconds that prefill chunks take beyond their tokens
	Pace            float64 // the iteration takes this many times what the law says
	// What is left: tokens of the budget, slots and tokens of KV.
	FreeTokens, FreeSeqs, FreeKV int
	// Streams are the requests inside, those that wait too.
	Streams []Stream
}

// Stream is a request and its future.
type Stream struct {
	ID                    ID
	Submitted, FirstToken time.Time // zero: no token yet
	Prompt, Output        int
	Produced              int
	Uncomputed            int // known tokens that must be computed before the next token
}

// Filling is what is added to an iteration.
type Filling struct {
	Decoding, Context int // requests that decode, and the sum of their contexts
	Chunks            []costmodel.Chunk
}

// SetFiller lets a filler add to the iterations that begin from now on; nil: none.
func (e *Engine) SetFiller(f Filler) { e.filler = f }

// fill asks the filler about an iteration of the given requests, tokens, context and prefill, and
// returns what these come to.
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
