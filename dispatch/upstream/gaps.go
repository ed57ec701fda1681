package upstream

import (
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// gapsStale is the age at which gaps say nothing about the runner any more.
const gapsStale = 2 * time.Second

// gapMeter sums up the gaps between the tokens of all streams of a runner, for one event to the
// planner every plan.GapsInterval.
type gapMeter struct {
	mu    sync.Mutex
	since time.Time     // of the first gap in the sum
	last  time.Time     // of the last one
	gaps  float64       // number of gaps
	time  time.Duration // their sum
	// Tokens of past answers, and the events in which they came. Older ones count less.
	tokens float64
	events float64
}

// add adds the tokens of an event and the time since the event before. due reports that it returns
// an event for the planner.
func (m *gapMeter) add(
	runner string, now time.Time, tokens int, after time.Duration,
) (sum plan.TokenGaps, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.last) > gapsStale {
		m.gaps, m.time, m.since = 0, 0, now
	}
	m.last = now
	m.gaps += float64(tokens) * m.perEvent()
	m.time += after
	if now.Sub(m.since) < plan.GapsInterval || m.gaps < 1 {
		return plan.TokenGaps{}, false
	}
	sum = plan.TokenGaps{Runner: runner, Gaps: int(m.gaps + 0.5), Time: m.time}
	m.gaps, m.time, m.since = 0, 0, now
	return sum, true
}

// learn adds the number of tokens of an answer and of the events in which they came. Servers may
// send several tokens in an event, and report their number only at the end.
func (m *gapMeter) learn(tokens, events int) {
	if tokens < 1 || events < 1 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	const memory = 0.9
	m.tokens = memory*m.tokens + float64(tokens)
	m.events = memory*m.events + float64(events)
}

// perEvent returns the mean number of tokens in an event. Less than one and a half counts as one.
// The last token of an answer often has no text, and a part of a character waits for the rest.
func (m *gapMeter) perEvent() float64 {
	if m.events == 0 || m.tokens < 1.5*m.events {
		return 1
	}
	return m.tokens / m.events
}
