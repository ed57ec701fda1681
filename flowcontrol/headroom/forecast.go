package headroom

import (
	"time"
)

// forecast compares the number of interactive requests that were late because of batch work with
// the number that was expected. What is expected comes from distributions and costs that may be far
// off: it decides only until requests show better.
type forecast struct {
	allowed        float64 // share of requests that may be late
	share, seconds float64 // expected share of late ones since the last reading, times seconds
	expected, late float64 // requests
	at             time.Time
}

const (
	// forecastTrust is the weight of the expectation, in late requests.
	forecastTrust = 2
	// minForecast and maxForecast bound what requests may prove, as the next lines and requests
	// differ from the last ones.
	minForecast, maxForecast = 0.02, 5
)

// expect records which share of requests is expected to be late over some seconds.
func (f *forecast) expect(share, seconds float64) {
	f.share += share * seconds
	f.seconds += seconds
}

// read takes over what was counted since the last reading: requests, those that were late because
// of batch work, and those of which nobody knows. As many of the last as were expected are supposed
// to be late, so that they prove nothing.
func (f *forecast) read(now time.Time, requests, late, hidden float64) {
	keep := kept(f.at, now, shareMemory)
	f.expected *= keep
	f.late *= keep
	f.at = now
	if f.seconds > 0 {
		expected := requests * (f.share / f.seconds)
		f.expected += expected
		f.late += max(late, min(expected, hidden))
	}
	// What was late beyond expectation is forgiven as it would have been allowed.
	f.expected += min(max(0, f.late-f.expected), requests*f.allowed)
	f.share, f.seconds = 0, 0
}

// error returns the ratio of late requests to those that were expected to be late.
func (f *forecast) error() float64 {
	return min(max((f.late+forecastTrust)/(f.expected+forecastTrust), minForecast), maxForecast)
}

// limit returns which share of requests may be expected to be late, so that as many are late as
// allowed.
func (f *forecast) limit() float64 { return f.allowed / f.error() }

// forecastLate records which shares of requests are expected to be late over some seconds, while
// prompts of batch lines take a part of the runners' time.
func (c *Controller) forecastLate(part, seconds float64) {
	part = min(1, part)
	_, slowdown := c.poolSlowdown()
	first := c.first.lateBy(slowdown, c.firstForecast.allowed)
	c.firstForecast.expect(min(1, first+c.promptHarm()*part), seconds)
	alone, objective := max(c.alone.usual, c.fit.perIteration()), c.objectiveTime()
	answers := c.answers.lateByPrompts(part, c.promptLoad(), alone, objective)
	tokens := c.tokens.lateBy(objective, c.addedTime())
	c.tokenForecast.expect(min(1, answers+tokens), seconds)
}
