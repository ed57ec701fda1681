package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// mixture recognises a gateway that counts batch lines among the interactive requests: from one
// period to the next, it counts more requests if more lines are answered, one for one. Changes are
// compared, not rates, because users and lines both follow the time of day.
type mixture struct {
	counted   float64 // requests at the last reading
	countedAt time.Time
	// Of the period since readings were last compared.
	answers, requests, seconds float64 // lines answered, requests counted
	// Of the period before, in a second.
	lines, others float64
	known         bool
	// Sums over changes of the last half hour: their number, the squares of those of lines and of
	// requests, and their products.
	changes, xx, xy, yy float64
	at                  time.Time
}

const (
	// mixturePeriod is the shortest period that is compared, in seconds, because a line is answered
	// a moment before or after the gateway counts it.
	mixturePeriod = 5
	// fewReadings show nothing about a mixture.
	fewReadings = 12
	// mixedSlope is the slope from which requests count as mixed, in requests counted more for each
	// line. The right value is 0 or 1.
	mixedSlope = 0.5
	// sureOfMixture is the least ratio of the slope to its standard error.
	sureOfMixture = 4
)

// read takes over the number of requests that the gateway has counted since the last reading. If it
// is negative or NaN, the gateway's counters have started again, or are absent.
func (m *mixture) read(now time.Time, requests, seconds float64) {
	if !(requests >= 0) {
		m.answers, m.requests, m.seconds, m.known = 0, 0, 0, false
		return
	}
	m.requests += requests
	m.seconds += seconds
	if m.seconds < mixturePeriod {
		return
	}
	x, y := m.answers/m.seconds, m.requests/m.seconds
	dx, dy, known := x-m.lines, y-m.others, m.known
	m.answers, m.requests, m.seconds = 0, 0, 0
	m.lines, m.others, m.known = x, y, true
	if !known {
		return
	}
	keep := kept(m.at, now, shareMemory)
	m.changes *= keep
	m.xx *= keep
	m.xy *= keep
	m.yy *= keep
	m.at = now
	m.changes++
	m.xx += dx * dx
	m.xy += dx * dy
	m.yy += dy * dy
}

// count takes over the number of requests in a reading of the gateway. Those that have ended are
// compared if the reading shows them: a line that is answered now had its first token long ago.
func (m *mixture) count(now time.Time, g *flowcontrol.Reading) {
	requests := countedFirstTokens(g)
	if n := len(g.AnswerLengths); n > 0 {
		requests = g.AnswerLengths[n-1].Count
	} else if answers := countedAnswers(g); answers > 0 {
		requests = answers
	}
	if m.countedAt.IsZero() {
		m.answers = 0 // those before the first reading are in no period
	} else {
		m.read(now, requests-m.counted, g.Sampled.Sub(m.countedAt).Seconds())
	}
	m.counted, m.countedAt = requests, g.Sampled
}

// withoutLines returns the number of interactive requests among those that a gateway has counted
// since the last reading. late is the number of late ones among all. A gateway that counts batch
// lines too serves as a brake only. Its late requests count, whosever they are, but lines in time
// prove nothing about users.
func (c *Controller) withoutLines(g *flowcontrol.Reading, requests, late float64) float64 {
	if g.Source != flowcontrol.Gateway || !c.mixture.mixed() {
		return requests
	}
	return max(late, requests-c.linesAnswered)
}

// mixed reports whether the gateway counts batch lines.
func (m *mixture) mixed() bool {
	if m.changes < fewReadings || m.xx <= 0 || m.xy < mixedSlope*m.xx {
		return false
	}
	rest := max(0, m.yy-m.xy*m.xy/m.xx)
	return m.xy*m.xy*m.changes >
		sureOfMixture*sureOfMixture*rest*m.xx
}
