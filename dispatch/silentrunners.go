package dispatch

import (
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// silentRunners are runners whose breakers are open, by ID.
type silentRunners map[string]silentRunner

type silentRunner struct {
	since  time.Time
	logged bool
}

// silentAfter is how long a breaker is open before that is logged: one that opens and closes again
// and again would fill the log.
const silentAfter = 5 * time.Second

// log logs runners that answer no line for some time, and those that answer again.
func (s *silentRunners) log(log *slog.Logger, now time.Time, pools []plan.PoolStatus) {
	silent := silentRunners{}
	for _, p := range pools {
		for _, r := range p.Runners {
			was, known := (*s)[r.ID]
			switch {
			case !r.Open && was.logged:
				log.Info("a runner answers lines again", "pool", p.ID, "runner", r.ID,
					"after", now.Sub(was.since).Round(time.Second))
				continue
			case !r.Open:
				continue
			case !known:
				was.since = now
			case !was.logged && now.Sub(was.since) >= silentAfter:
				log.Warn("a runner answers no line; one is tried now and then. Check it, and "+
					"what is between", "pool", p.ID, "runner", r.ID, "last",
					failureCodes[r.Failed.Outcome], "status", r.Failed.Status)
				was.logged = true
			}
			silent[r.ID] = was
		}
	}
	*s = silent
}
