package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
)

// silentRunners logs runners that get no lines but single ones, because they answer none or answer
// nearly all badly.
type silentRunners struct {
	open map[string]silentRunner // by ID; those whose breakers are open
	// warned holds when runners were last logged for their bad answers, by ID
	warned map[string]time.Time
}

type silentRunner struct {
	since   time.Time
	failing bool
	logged  bool
}

const (
	// Time from which on an open breaker is logged that lacks answers: one that opens and closes
	// again and again would fill the log.
	silentAfter = 5 * time.Second
	// Time between two warnings of a runner's bad answers, unless its breaker stays open for
	// silentAfter.
	warnedAgainAfter = time.Minute
)

// log logs breakers that are open, and that are closed again.
func (s *silentRunners) log(log *slog.Logger, now time.Time, pools []plan.PoolStatus) {
	open := map[string]silentRunner{}
	for _, p := range pools {
		for _, r := range p.Runners {
			was, known := s.open[r.ID]
			switch {
			case !r.Open && was.logged:
				s.closed(log, now, p.ID, r.ID, was)
				continue
			case !r.Open:
				continue
			case !known:
				was.since = now
			}
			if !was.logged || r.Failing != was.failing {
				was.failing = r.Failing
				was.logged = s.opened(log, now, p.ID, &r, was)
			}
			open[r.ID] = was
		}
	}
	s.open = open
	maps.DeleteFunc(s.warned, func(_ string, at time.Time) bool {
		return now.Sub(at) > warnedAgainAfter
	})
}

// opened logs a breaker that is open, if that is due, and reports whether it was.
func (s *silentRunners) opened(
	log *slog.Logger, now time.Time, pool string, r *plan.RunnerStatus, is silentRunner,
) (logged bool) {
	last := r.Failed.Outcome.String()
	if code := work.FailureCodes[r.Failed.Outcome]; code != "" {
		last = code
	}
	if !r.Failing {
		if now.Sub(is.since) < silentAfter {
			return false
		}
		log.Warn("a runner answers no line; one is tried now and then. Check it, and what is "+
			"between", "pool", pool, "runner", r.ID, "last", last, "status", r.Failed.Status)
		return true
	}
	if at, warned := s.warned[r.ID]; warned && now.Sub(at) <= warnedAgainAfter &&
		now.Sub(is.since) < silentAfter {
		return false
	}
	if s.warned == nil {
		s.warned = map[string]time.Time{}
	}
	s.warned[r.ID] = now
	log.Warn("a runner answers nearly all lines badly; one is tried now and then. Check it, its "+
		"key and its URL", "pool", pool, "runner", r.ID, "last", last, "status", r.Failed.Status,
		"bad", fmt.Sprintf("%d of the last %d", r.Bad, r.Judged))
	return true
}

func (s *silentRunners) closed(
	log *slog.Logger, now time.Time, pool, runner string, was silentRunner,
) {
	level, message := slog.LevelInfo, "a runner answers lines again"
	if was.failing {
		level, message = slog.LevelWarn, "a runner answers lines well again"
	}
	log.Log(context.Background(), level, message, "pool", pool, "runner", runner, "after",
		now.Sub(was.since).Round(time.Second))
}
