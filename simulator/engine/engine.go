package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

var (
	// ErrTooLong is returned for a prompt that leaves no context for output.
	ErrTooLong = errors.New("prompt exceeds the context length")
	// ErrDuplicate is returned for an ID that is waiting or running.
	ErrDuplicate = errors.New("request id is in use")
)

// Engine models one model server. Build it with New. It has one owner.
type Engine struct {
	cfg    Config
	rng    *rand.Rand
	kv     *memory
	pace   float64
	stall  time.Duration
	submit uint64

	byID    map[ID]*sequence
	waiting waiting
	running []*sequence // in the order of admission

	busy   bool
	report Iteration
	ends   []time.Duration // since report.Start, of each iteration of the run
	// Of the present iteration: the requests that decode in it, and when the previous one ended.
	decoding    uint64
	previousEnd time.Time
	noise       []float64 // drawn and not yet used; some remain after a truncated run

	filler    Filler // nil: none
	scheduled Scheduled
	filled    bool // the filler has added to the present iteration

	counters    Counters
	gaps        TokenGaps
	firstTokens FirstTokens
	prompts     Lengths // of finished requests
	answers     Lengths
	pending     int // known tokens that are not computed, of waiting and running requests
}

// New builds an idle engine. rng is used for the noise alone.
func New(cfg Config, rng *rand.Rand) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("engine configuration: %w", err)
	}
	blocks := cfg.Profile.KVTokens / BlockSize
	if limit := blocks * BlockSize; cfg.MaxModelLen == 0 || cfg.MaxModelLen > limit {
		cfg.MaxModelLen = limit
	}
	return &Engine{cfg: cfg, rng: rng, kv: newMemory(blocks), pace: 1, byID: map[ID]*sequence{},
		prompts: newLengths(cfg.MaxModelLen), answers: newLengths(cfg.MaxModelLen)}, nil
}

// MaxModelLen returns the limit of prompt plus output of a request, in tokens.
func (e *Engine) MaxModelLen() int { return e.cfg.MaxModelLen }

// Submit adds a request to the waiting queue at now. The next iteration considers it. Output beyond
// the context length is cut off.
func (e *Engine) Submit(now time.Time, r Request) error {
	switch {
	case r.Prompt < 1 || r.Output < 1:
		return fmt.Errorf("submit request %d: prompt is %d and output %d tokens, want at least 1",
			r.ID, r.Prompt, r.Output)
	case r.Prompt >= e.cfg.MaxModelLen:
		return fmt.Errorf("submit request %d of %d tokens: %w of %d", r.ID, r.Prompt, ErrTooLong,
			e.cfg.MaxModelLen)
	case e.byID[r.ID] != nil:
		return fmt.Errorf("submit request %d: %w", r.ID, ErrDuplicate)
	}
	r.Output = min(r.Output, e.cfg.MaxModelLen-r.Prompt)
	r.Prefix = r.Prefix[:min(len(r.Prefix), r.Prompt/BlockSize)]
	if !e.cfg.PrefixCaching {
		r.Prefix = nil
	}
	if e.cfg.Scheduling == FirstCome {
		r.Priority = 0
	}
	s := &sequence{Request: r, order: e.submit, known: r.Prompt, prefilling: true, submitted: now}
	e.submit++
	e.byID[r.ID] = s
	e.waiting.add(s)
	e.pending += s.known
	e.truncateRun(now)
	return nil
}

// Abort cancels a request and reports whether it was known. A waiting request is removed at once. A
// running one is removed at the end of the present iteration, which reports it.
func (e *Engine) Abort(now time.Time, id ID) bool {
	s := e.byID[id]
	if s == nil || s.aborted {
		return false
	}
	e.truncateRun(now)
	if s.slot >= 0 {
		e.waiting.remove(s)
		e.forget(s)
		e.counters.Aborted++
		return true
	}
	s.aborted = true
	if !e.busy {
		e.leave()
	}
	return true
}

// Has reports whether a request is waiting or running.
func (e *Engine) Has(id ID) bool { return e.byID[id] != nil }

// SetPace multiplies the time of iterations that begin after now by a factor.
func (e *Engine) SetPace(now time.Time, factor float64) {
	e.pace = factor
	e.truncateRun(now)
}

// Stall adds d to the next iteration that begins after now.
func (e *Engine) Stall(now time.Time, d time.Duration) {
	e.stall += d
	e.truncateRun(now)
}

// FlushCache removes the blocks that no request uses from the prefix cache, and returns their
// number.
func (e *Engine) FlushCache(now time.Time) int {
	e.truncateRun(now)
	return e.kv.flush()
}

func (e *Engine) forget(s *sequence) {
	delete(e.byID, s.ID)
	e.pending -= s.known - s.computed
}
