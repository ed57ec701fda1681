package engine

import "time"

// ID identifies a request in an engine. The driver chooses it.
type ID uint64

// Hash identifies a KV block by its tokens and all tokens before them.
type Hash uint64

// Request is a request that a driver submits. Output is its future length, which only the engine
// uses.
type Request struct {
	ID       ID
	Prompt   int    // tokens, at least 1
	Output   int    // tokens it will produce, at least 1
	Priority int    // lower goes first
	Prefix   []Hash // of the prompt's leading full blocks; may be empty or shorter than the prompt
}

// Completion describes a finished request.
type Completion struct {
	ID          ID
	Output      int // tokens produced
	Cached      int // prompt tokens found in the prefix cache when it was first admitted
	Preemptions int // times it released its KV blocks and was computed again
	Submitted   time.Time
	Admitted    time.Time // start of its first iteration
	FirstToken  time.Time
	Finished    time.Time
}

// sequence is a request inside the engine.
//
// Its known tokens are the prompt and the output so far. Computed tokens have their KV in memory. A
// decoding sequence lacks exactly one: the last output token.
type sequence struct {
	Request
	order      uint64 // of submission
	known      int
	computed   int
	produced   int
	scheduled  int  // tokens in the present iteration
	prefilling bool // until computed first reaches known
	aborted    bool // is removed at the end of the iteration
	shared     int  // number of leading blocks in the prefix cache
	private    int  // number of private blocks
	found      int  // of computed, in the prefix cache when it was last admitted
	slot       int  // index in the waiting heap; -1 while running

	cached      int
	preemptions int
	submitted   time.Time
	admitted    time.Time
	firstToken  time.Time
	lastToken   time.Time // before its last preemption
}

func (s *sequence) blocks() int { return s.shared + s.private }

func (s *sequence) completion(now time.Time) Completion {
	return Completion{
		ID: s.ID, Output: s.produced, Cached: s.cached, Preemptions: s.preemptions,
		Submitted: s.submitted, Admitted: s.admitted, FirstToken: s.firstToken, Finished: now,
	}
}

// loss returns the tokens that are lost with the blocks of s. Blocks in the prefix cache stay.
func (s *sequence) loss() Loss {
	return Loss{ID: s.ID, Tokens: s.computed - max(s.found, s.shared*BlockSize)}
}

// before is the order of admission. The last sequence in it is preempted first.
func (s *sequence) before(o *sequence) bool {
	if s.Priority != o.Priority {
		return s.Priority < o.Priority
	}
	return s.order < o.order
}

func blocksFor(tokens int) int { return (tokens + BlockSize - 1) / BlockSize }
