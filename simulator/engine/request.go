package engine

import "time"

// ID names a request within an engine; the driver chooses it.
type ID uint64

// Hash identifies a KV block by its tokens and by all tokens before them.
type Hash uint64

// Request is what a driver submits. Output is the truth about the future and is
// for the engine alone.
type Request struct {
	ID       ID
	Prompt   int    // tokens, at least 1
	Output   int    // tokens it will produce, at least 1
	Priority int    // lower goes first
	Prefix   []Hash // of the prompt's leading full blocks; may be empty or shorter than the prompt
}

// Completion tells how a finished request fared.
type Completion struct {
	ID          ID
	Output      int // tokens produced
	Cached      int // prompt tokens found in the prefix cache when it was first admitted
	Preemptions int // times it lost its KV blocks and was computed again
	Submitted   time.Time
	Admitted    time.Time // start of its first iteration
	FirstToken  time.Time
	Finished    time.Time
}

// sequence is a request inside the engine.
//
// Its known tokens are the prompt and what it has produced; those computed have
// their KV in memory. A decoding sequence lacks exactly one: the last produced.
type sequence struct {
	Request
	order      uint64 // of submission; breaks ties and names the latest arrival
	known      int
	computed   int
	produced   int
	scheduled  int  // tokens in the iteration under way
	prefilling bool // until computed first reaches known
	aborted    bool // leaves at the end of the iteration
	shared     int  // leading blocks held in the prefix cache
	private    int  // blocks held alone
	found      int  // of computed, in the prefix cache when it was last admitted
	slot       int  // index in the waiting heap, -1 when running

	cached      int
	preemptions int
	submitted   time.Time
	admitted    time.Time
	firstToken  time.Time
}

func (s *sequence) blocks() int { return s.shared + s.private }

func (s *sequence) completion(now time.Time) Completion {
	return Completion{
		ID: s.ID, Output: s.produced, Cached: s.cached, Preemptions: s.preemptions,
		Submitted: s.submitted, Admitted: s.admitted, FirstToken: s.firstToken, Finished: now,
	}
}

// loss is what goes with the blocks that s holds; what it shares stays cached.
func (s *sequence) loss() Loss {
	return Loss{ID: s.ID, Tokens: s.computed - max(s.found, s.shared*BlockSize)}
}

// before is the order of admission; the last in it is the first to be preempted.
func (s *sequence) before(o *sequence) bool {
	if s.Priority != o.Priority {
		return s.Priority < o.Priority
	}
	return s.order < o.order
}

func blocksFor(tokens int) int { return (tokens + BlockSize - 1) / BlockSize }
