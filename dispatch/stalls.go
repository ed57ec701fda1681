package dispatch

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// stalls knows since when batches that are being worked on have got no result. The loop owns it.
type stalls struct {
	by, next map[string]stall // by batch; next are those of the post that is being made
}

type stall struct {
	done  int // lines with a result
	since time.Time
}

// minStall is the time without a result from which on forecasts are doubted.
const minStall = 20 * time.Second

// begin begins a post.
func (s *stalls) begin() { s.next = make(map[string]stall, len(s.by)) }

// end ends a post. Batches that were not in it are forgotten.
func (s *stalls) end() { s.by = s.next }

// doubt returns a forecast of a batch as it can be after the time without a result. Forecasts come
// from the rate of the pool, which may be that of better times, or none that was ever measured.
// Of things that have lasted for a time and whose end nobody knows, half last for as long again,
// one of ten for a ninth, and one of ten for nine times as long.
func (s *stalls) doubt(
	now time.Time, r *work.State, status plan.BatchStatus, known bool, f store.Forecast,
) store.Forecast {
	done := r.Results.Completed + r.Results.Failed
	was, seen := s.by[r.Batch.ID]
	if !seen || was.done != done || !known || !trying(r, status) {
		was = stall{done, now}
	}
	s.next[r.Batch.ID] = was
	quiet := now.Sub(was.since)
	if quiet < minStall {
		return f
	}
	lasts := minStall // in steps, so that what users see is steady
	for lasts < quiet {
		lasts += lasts / 4
	}
	f.Earliest = laterIfKnown(f.Earliest, was.since.Add(lasts+lasts/9))
	f.Finish = laterIfKnown(f.Finish, was.since.Add(2*lasts))
	f.OneMore = laterIfKnown(f.OneMore, was.since.Add(2*lasts))
	latest := was.since.Add(10 * lasts)
	f.Latest = laterIfKnown(f.Latest, latest)
	if due := r.Batch.Deadline; f.Verdict == store.VerdictOK && !due.IsZero() && latest.After(due) {
		f.Verdict = store.VerdictAtRisk
	}
	return f
}

// trying reports whether lines of a batch are in flight, or don't start for a fault or because the
// pool is watched first. Those that wait for their turn are left out: the forecast knows what is
// before them.
func trying(r *work.State, status plan.BatchStatus) bool {
	if status.InFlight > 0 || status.Retrying > 0 || r.Blocked != plan.Flowing {
		return true
	}
	switch status.Waiting {
	case plan.RunnersDown, plan.RunnersFailing, plan.NoRunner, plan.WaitingToRetry,
		plan.StoreDown, plan.DiskFull, plan.StorageAway, plan.Reason(flowcontrol.ReasonWatching):
		return true
	}
	return false
}

func laterIfKnown(t, bound time.Time) time.Time {
	if !t.IsZero() && bound.After(t) {
		return bound
	}
	return t
}
