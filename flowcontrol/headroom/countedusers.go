package headroom

import (
	"math"
	"time"
)

// countedUsers estimates how many interactive requests are in the pool at a time where no engine
// shows them, by how many a gateway counts and how long they stay.
type countedUsers struct {
	rate slowMean // requests in a second
	at   time.Time
}

// countedDeviations is by how many standard deviations they may be more than their mean.
const countedDeviations = 3

// read takes over how many requests have come since the last reading.
func (u *countedUsers) read(now time.Time, requests float64) {
	if dt := now.Sub(u.at).Seconds(); !u.at.IsZero() && dt > 0 {
		u.rate.add(now, requests/dt)
	}
	u.at = now
}

// countedUsers returns how many interactive requests a runner may have at a time; 0: nothing counts
// them.
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
