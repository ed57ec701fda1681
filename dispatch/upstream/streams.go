package upstream

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// AnswerKind is what the answers of an endpoint for a model have in common.
type AnswerKind struct{ URL, Model string }

// Streams holds what is known about the streams of a runner.
type Streams struct {
	gaps  gapMeter
	trust streamTrust

	mu  sync.Mutex
	off map[AnswerKind]bool // answers that can't be streamed or assembled
}

// IsOff reports whether no streams of a kind are requested.
func (s *Streams) IsOff(kind AnswerKind) bool {
	if !s.trust.holds(time.Now()) {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.off[kind]
}

// Trusted reports whether the gaps between tokens are those of the engine.
func (s *Streams) Trusted(now time.Time) bool { return s.trust.holds(now) }

// AddGap adds the tokens of an event of a stream and the time since the event before. due reports
// that it returns an event for the planner.
func (s *Streams) AddGap(
	runner string, now time.Time, tokens int, after time.Duration,
) (sum plan.TokenGaps, due bool) {
	return s.gaps.add(runner, now, tokens, after)
}

// Ended takes over a stream of so many tokens in so many events, which was assembled.
func (s *Streams) Ended(now time.Time, seen StreamGaps, tokens, events int) {
	s.gaps.learn(tokens, events)
	s.trust.judge(now, seen, tokens)
}

// Warning returns what is wrong with the streams of a runner; false: nothing.
func (s *Streams) Warning(runner string) (flowcontrol.Warning, bool) {
	return s.trust.warning(runner)
}

// TurnOff stops the streaming of answers of a kind. first reports that it was on before.
func (s *Streams) TurnOff(kind AnswerKind) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off == nil {
		s.off = map[AnswerKind]bool{}
	}
	first = !s.off[kind]
	s.off[kind] = true
	return first
}

// forget removes models that are not served any more.
func (s *Streams) forget(served []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.off, func(kind AnswerKind, _ bool) bool {
		return !slices.Contains(served, kind.Model)
	})
}
