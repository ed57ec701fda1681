package headroom

import (
	"time"
)

// uncounted is the time in which requests ran and whose tokens were not counted yet. Some engines
// count those of an answer when it ends, all at once.
type uncounted struct {
	period   time.Duration
	requests float64 // milliseconds, of all requests that ran
}

// longestUncounted is the longest time until tokens are counted. After that none are expected.
const longestUncounted = 5 * time.Minute

// read takes over a period, the mean number of requests that ran in it, and the number of tokens
// that were counted in it. Each running request gets one token of an iteration. So read returns the
// time of one iteration in milliseconds, their number, and their period; 0: it is not known yet.
func (u *uncounted) read(
	period time.Duration, running, produced float64,
) (of time.Duration, iteration, iterations float64) {
	if running > 0 {
		u.period += period
		u.requests += milliseconds(period) * running
	}
	if u.period > longestUncounted {
		*u = uncounted{}
	}
	if !(produced > 0) || u.requests <= 0 {
		return 0, 0, 0
	}
	of, iteration = u.period, u.requests/produced
	*u = uncounted{}
	return of, iteration, milliseconds(of) / iteration
}
