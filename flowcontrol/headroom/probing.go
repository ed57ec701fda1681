package headroom

import "time"

// probeAfter is the time without lines after which one is tried in a pool, if nothing else shows
// its iterations.
const probeAfter = 30 * time.Second

// idles reports whether the pool has carried no line for a while.
func (c *Controller) idles(now time.Time) bool { return now.Sub(c.carriedAt) >= probeAfter }

// idlesWithoutUsers reports whether it has carried none, and no request of users was counted.
func (c *Controller) idlesWithoutUsers(now time.Time) bool {
	return c.idles(now) && now.Sub(c.lateLines.usersAt) >= probeAfter
}

// probe lets one line start in a pool that has carried none for a while, because without it nothing
// would be observed any more.
func (c *Controller) probe(now time.Time) {
	if !c.idles(now) || c.watching(now) {
		return
	}
	if n := float64(len(c.roster.Members)); c.lines*n < 1 {
		c.lines = 1 / n
	}
}
