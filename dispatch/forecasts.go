package dispatch

import (
	"log/slog"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// forecasts holds what capacity planning expects of batches, if this process plans. It is safe
// for concurrent use.
type forecasts struct {
	mu      sync.Mutex
	byBatch map[string]store.Forecast
}

// of returns the forecast of a batch; zero if there is none.
func (f *forecasts) of(batch string) store.Forecast {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byBatch[batch]
}

// replace takes over new forecasts, but for those that are nearly what they were, so that what
// users see is steady. It returns the changes of feasibility and of verdicts. Batches
// that can't meet their deadline are repeated with every call, because the planner may have learned
// of them only since the last one.
func (f *forecasts) replace(at time.Time, by map[string]store.Forecast) (feasible []plan.Event,
	changed []changedVerdict) {
	now := make(map[string]store.Forecast, len(by))
	f.mu.Lock()
	before := f.byBatch
	for batch, forecast := range by {
		now[batch] = forecast.Seconds()
		if was, known := before[batch]; known && was.Near(now[batch], at) {
			now[batch] = was
		}
	}
	f.byBatch = now
	f.mu.Unlock()
	for batch, forecast := range now {
		infeasible := forecast.Verdict == store.VerdictInfeasible
		if infeasible || before[batch].Verdict == store.VerdictInfeasible {
			feasible = append(feasible, plan.Feasibility{Batch: batch, Infeasible: infeasible})
		}
		if was := before[batch].Verdict; was != forecast.Verdict {
			changed = append(changed, changedVerdict{batch, was, forecast})
		}
	}
	for batch, forecast := range before {
		if _, known := now[batch]; !known && forecast.Verdict == store.VerdictInfeasible {
			feasible = append(feasible, plan.Feasibility{Batch: batch})
		}
	}
	return feasible, changed
}

// changedVerdict is a forecast with another verdict than the one before.
type changedVerdict struct {
	batch string
	was   store.Verdict // empty: there was none
	now   store.Forecast
}

// log reports the change. The first verdict of a batch is reported only if it is a bad one.
func (c changedVerdict) log(log *slog.Logger, tenant string) {
	args := []any{"batch_id", c.batch, "tenant", tenant, "verdict", c.now.Verdict}
	if c.was != "" {
		args = append(args, "was", c.was)
	}
	if !c.now.Finish.IsZero() {
		args = append(args, "predicted_finish", c.now.Finish)
	}
	switch {
	case c.now.Verdict == store.VerdictInfeasible:
		log.Warn("the deadline of a batch can't be met", args...)
	case c.now.Verdict == store.VerdictAtRisk:
		log.Info("the deadline of a batch is at risk", args...)
	case c.now.Verdict == store.VerdictOK && c.was != "":
		log.Info("the deadline of a batch can be met again", args...)
	}
}

// SetForecasts replaces the forecasts of batches, by batch. One process at a time has any. They are
// shown to users, and batches that can't meet their deadline go behind all others. A batch without
// a forecast has none from now on.
func (d *Dispatcher) SetForecasts(by map[string]store.Forecast) {
	feasible, changed := d.forecasts.replace(time.Now(), by)
	s := d.current.Load()
	if s == nil {
		return
	}
	for _, ev := range feasible {
		s.Inbox.Event(ev)
	}
	for _, c := range changed {
		tenant := ""
		if r := s.Runs.Get(c.batch); r != nil {
			tenant = r.Tenant
		}
		c.log(d.log, tenant)
	}
}
