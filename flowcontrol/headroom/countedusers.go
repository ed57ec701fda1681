package headroom

import (
	"math"
	"time"
)

// countedUsers estimates the number of interactive requests in the pool at a time, where no engine
// shows them. It multiplies the rate that a gateway counts by the time that they stay.
type countedUsers struct {
	rate slowMean // requests in a second
	at   time.Time
}

// countedDeviations is the margin above the mean number of requests, in standard deviations.
const countedDeviations = 3

// read takes over the number of requests that have come since the last reading.
func (u *countedUsers) read(now time.Time, requests float64) {
	if dt := now.Sub(u.at).Seconds(); !u.at.IsZero() && dt > 0 {
		u.rate.add(now, requests/dt)
	}
	u.at = now
}

// countedUsers returns the number of interactive requests that a runner may have at a time; 0:
// nothing counts them.
func (c *Controller) countedUsers() float64 {
	rate := c.counted.rate.mean() / max(1, float64(len(c.roster.Members)))
	token := c.tokens.usual()
	if token <= 0 {
		token = c.fit.perIteration()
	}
	stay := (c.answers.mean() + 1) * token / 1000
	mean := rate * stay
	return mean + countedDeviations*math.Sqrt(mean)
}
