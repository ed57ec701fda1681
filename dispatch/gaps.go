package dispatch

import (
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// The planner hears of a runner's token gaps every plan.GapsInterval while there are any. What was
// gathered longer than gapsStale ago says nothing about the runner now.
const gapsStale = 2 * time.Second

// gapMeter gathers the gaps between tokens of all streams of a runner.
type gapMeter struct {
	mu     sync.Mutex
	since  time.Time // of the first gap gathered
	last   time.Time
	gaps   float64
	time   time.Duration
	tokens float64 // of past answers, the older the less they count
	pieces float64 // in which those came
}

// add takes what a stream brought: tokens, so long after the ones before. Once in a while it has
// news for the planner.
func (m *gapMeter) add(
	runner string, now time.Time, tokens int, after time.Duration,
) (news plan.TokenGaps, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.last) > gapsStale {
		m.gaps, m.time, m.since = 0, 0, now
	}
	m.last = now
	m.gaps += float64(tokens) * m.perPiece()
	m.time += after
	if now.Sub(m.since) < plan.GapsInterval || m.gaps < 1 {
		return plan.TokenGaps{}, false
	}
	news = plan.TokenGaps{Runner: runner, Gaps: int(m.gaps + 0.5), Time: m.time}
	m.gaps, m.time, m.since = 0, 0, now
	return news, true
}

// learn hears how many tokens an answer had and in how many pieces they came: servers may send
// several tokens at once and don't say so before the end.
func (m *gapMeter) learn(tokens, pieces int) {
	if tokens < 1 || pieces < 1 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	const memory = 0.9
	m.tokens = memory*m.tokens + float64(tokens)
	m.pieces = memory*m.pieces + float64(pieces)
}

// perPiece is how many tokens come at once. Less than one and a half is one: the last token of an
// answer often has no text, and halves of a letter wait for the other half.
func (m *gapMeter) perPiece() float64 {
	if m.pieces == 0 || m.tokens < 1.5*m.pieces {
		return 1
	}
	return m.tokens / m.pieces
}
