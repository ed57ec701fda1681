package headroom

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// quiet holds which share of interactive requests is late without batch work, as seen while there
// was hardly any.
type quiet struct {
	first, each struct {
		seen  flowcontrol.Growth
		share fadingShare
	}
	last  []flowcontrol.Bucket
	times firstTokenTimes
	// lastTokens and tokens are the same for the mean times between tokens.
	lastTokens []flowcontrol.Bucket
	tokens     firstTokenTimes
	usual      float64 // seconds in which nearly all first tokens come; 0: unknown
	best       bestTimes
}

// firstObjective returns the objective for first tokens. One that the pool misses by itself more
// often than a few times in a hundred is not what its users can be promised: long prompts have more
// time than the objective says, or it is a mistake.
func (c *Controller) firstObjective() time.Duration {
	if kept := c.keptFirst(); kept > 0 {
		return kept
	}
	usual := c.quiet.usualTime()
	if configured := c.slo.WithUsual().TTFT; usual <= configured {
		return configured
	}
	return time.Duration(1.25 * float64(usual))
}

// usualTime returns in which time nearly all first tokens come at least; 0: unknown.
func (q *quiet) usualTime() time.Duration {
	seconds := q.usual
	if !q.best.at.IsZero() {
		seconds = min(seconds, q.best.usual)
	}
	return time.Duration(seconds * float64(time.Second))
}

// judge counts the first tokens that were late without batch work again, by another objective.
func (q *quiet) judge(now time.Time, objective time.Duration) {
	a := flowcontrol.Estimated([]flowcontrol.Bucket(q.times), objective.Seconds())
	q.first.share = fadingShare{}
	q.best.share, q.best.times, q.best.all, q.best.late = 1, nil, 0, 0
	if a.Requests > 0 {
		q.first.share = fadingShare{all: a.Requests, some: a.Late, at: now}
	}
}

const quietMemory = 6 * time.Hour

func (q *quiet) read(
	now time.Time, g *flowcontrol.Reading, first flowcontrol.Attainment,
	limit float64, alone bool,
) {
	if alone {
		q.tokens.add(q.lastTokens, g.TokenTimes)
		q.times.add(q.last, g.FirstTokenTimes)
		q.usual = q.times.usual(limit)
	}
	n, late, ok := q.first.seen.Since(first)
	if ok && alone {
		q.first.share.add(now, quietMemory, n, late)
	}
	if ok {
		q.best.read(now, q.last, g.FirstTokenTimes, n, late, limit)
	}
	q.last, q.lastTokens = g.FirstTokenTimes, g.TokenTimes
	if n, late, ok := q.each.seen.Since(g.TPOT); ok && alone {
		q.each.share.add(now, quietMemory, n, late)
	}
}

// innocent returns which share of the requests may be late without being charged. A few requests of
// a quiet time say little, so they count beside others of which the usual share was late.
func innocent(f *fadingShare) float64 {
	const assumed, requests = 0.001, 200
	share := (f.some + assumed*requests) / (f.all + requests)
	return share + 0.5*math.Sqrt(share/(f.all+requests))
}

func (q *quiet) ttft() float64 {
	share := innocent(&q.first.share)
	if q.best.at.IsZero() {
		return share
	}
	return min(share, q.best.share)
}

func (q *quiet) tpot() float64 { return innocent(&q.each.share) }

const (
	// quietAfter is the time without batch lines in the pool after which requests count: those that
	// are answered now were there for about that time.
	quietAfter = 10 * time.Second
	// quietStart is the longest time for which the policy only watches a pool that it does not
	// know.
	quietStart = time.Minute
	// quietRelative is the same without an objective, until requests have shown one: keptFirst.
	quietRelative = 3 * time.Minute
	// firstReading is the time for which it waits for a gateway to show itself, or to show itself
	// again.
	firstReading = 5 * time.Second
	// longestPeriod is the longest wait for the second reading of a gateway.
	longestPeriod = 30 * time.Second
	// minQuiet is the shortest time for which a pool is watched whose requests a gateway shows.
	minQuiet = 20 * time.Second
	// quietRequests is the number of requests that the policy wants to see in that time.
	quietRequests = 60
)

// watching reports whether no line may start yet, because it is not known how the pool does
// without batch work. It ends when enough is known, while no gateway shows more, and at last after
// quietStart.
func (c *Controller) watching(now time.Time) bool {
	watches, enough := c.watches(now)
	c.watched = c.watched || enough
	return watches
}

// watches reports whether no line may start yet, and whether the pool need not be watched again.
func (c *Controller) watches(now time.Time) (watches, enough bool) {
	if c.watched || !c.shared || c.target.fixed() || c.began.IsZero() {
		return false, false
	}
	if c.resume.pending != nil {
		return true, false
	}
	since := now.Sub(c.began)
	if since <= quietRelative && c.lacksObjective() {
		return true, false
	}
	met := c.firstObjective() <= c.slo.WithUsual().TTFT // or prefix caches may have to fill first
	if since > quietStart ||
		met && c.quiet.first.share.all >= quietRequests && since >= minQuiet {
		return false, true
	}
	silence := max(firstReading, 3*c.outcomes.every)
	if c.outcomes.every == 0 { // the second reading is still to come
		silence = longestPeriod
	}
	switch {
	case since < firstReading, now.Sub(c.outcomes.at) < silence && !c.mayCountLines():
		return true, false
	case c.outcomes.at.IsZero() && c.carriedAt.Before(c.began) && // else they may be our lines
		c.virtual.quiet.all < quietRequests && c.servesUsers():
		return true, false
	}
	return false, !c.outcomes.at.IsZero() // it has fallen silent
}

// watchTimes returns for how long the pool has been watched, and for how long at most it will be,
// as far as is known. 0: it is not watched, or only until what was learned before is read.
func (c *Controller) watchTimes(now time.Time) (since, longest time.Duration) {
	watches, _ := c.watches(now)
	if !watches || c.resume.pending != nil {
		return 0, 0
	}
	since = now.Sub(c.began)
	switch {
	case c.lacksObjective():
		longest = quietRelative
	case c.outcomes.at.IsZero() && !c.servesUsers():
		longest = firstReading
	default:
		longest = quietStart
	}
	return min(since, longest), longest
}

// mayCountLines reports whether the requests that engines count may be batch lines: behind a
// gateway nobody knows which engine had a line, so they are not taken away.
func (c *Controller) mayCountLines() bool {
	return c.source.of == flowcontrol.Metrics && !c.carriedAt.Before(c.began) &&
		slices.ContainsFunc(c.roster.Members, func(m *flowcontrol.Member[*runner]) bool {
			return m.State.access == flowcontrol.Routed
		})
}

// lacksObjective reports whether nothing limits the time to first token yet, and requests of users
// will soon show it. Once lines have run, requests that engines count may be lines.
func (c *Controller) lacksObjective() bool {
	if !c.slo.Relative() || c.keptFirst() > 0 {
		return false
	}
	if c.source.of == flowcontrol.Gateway {
		return len(c.quiet.last) > 0
	}
	return !c.engineFirst.shownAt.IsZero() && c.carriedAt.Before(c.began) && c.servesUsers()
}

// servesUsers reports whether metrics show interactive requests.
func (c *Controller) servesUsers() bool {
	for _, m := range c.roster.Members {
		if m.State.interactive.running.mean > 0 {
			return true
		}
	}
	return false
}

// withoutUs reports whether no batch line has run in the pool for a while.
func (c *Controller) withoutUs(now time.Time) bool {
	return now.Sub(c.carriedAt) > quietAfter
}
