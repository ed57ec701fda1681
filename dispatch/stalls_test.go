package dispatch

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// The end of a batch of which nothing gets done moves away, and its deadline is at risk, until
// something is done. A batch that waits for its turn is left as it was predicted.
func TestForecastsOfStalledBatchesAreDoubted(t *testing.T) {
	start := time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)
	soon := store.Forecast{Verdict: store.VerdictOK, Finish: start.Add(time.Second),
		Earliest: start, Latest: start.Add(2 * time.Second), OneMore: start.Add(time.Second)}
	hanging := plan.BatchStatus{InFlight: 40}
	failing := plan.BatchStatus{Waiting: plan.RunnersFailing}
	watched := plan.BatchStatus{Waiting: plan.Reason(flowcontrol.ReasonWatching)}
	queued := plan.BatchStatus{Waiting: plan.Queued}
	for _, c := range []struct {
		name   string
		status plan.BatchStatus
		after  time.Duration
		done   int // at that time
		due    time.Duration
		finish time.Duration // at least, from then on; 0: as predicted
		want   store.Verdict
	}{
		{"lines have just started", hanging, 15 * time.Second, 0, time.Hour, 0, store.VerdictOK},
		{"lines hang", hanging, 3 * time.Minute, 0, 24 * time.Hour, 3 * time.Minute,
			store.VerdictOK},
		{"lines hang for a part of the window", hanging, 9 * time.Minute, 0, time.Hour,
			9 * time.Minute, store.VerdictAtRisk},
		{"runners fail", failing, 9 * time.Minute, 0, time.Hour, 9 * time.Minute,
			store.VerdictAtRisk},
		{"the pool is watched", watched, 2 * time.Minute, 0, 24 * time.Hour, 2 * time.Minute,
			store.VerdictOK},
		{"a line was done", hanging, 9 * time.Minute, 1, time.Hour, 0, store.VerdictOK},
		{"others go first", queued, 9 * time.Minute, 0, time.Hour, 0, store.VerdictOK},
	} {
		var s stalls
		r := work.State{Batch: store.Batch{ID: "b", Deadline: start.Add(c.due)}}
		var got store.Forecast
		for at := time.Duration(0); at <= c.after; at += time.Second {
			if at == c.after {
				r.Results.Completed = c.done
			}
			s.begin()
			got = s.doubt(start.Add(at), &r, c.status, true, soon)
			s.end()
		}
		want := soon
		want.Verdict = c.want
		if c.finish > 0 {
			now := start.Add(c.after)
			if got.Finish.Before(now.Add(c.finish)) || got.Latest.Before(got.Finish) ||
				got.Earliest.After(got.Finish) || got.Earliest.Before(now) ||
				got.OneMore.Before(got.Finish) || got.Verdict != c.want {
				t.Errorf("%s: the forecast is %+v", c.name, got)
			}
			continue
		}
		if got != want {
			t.Errorf("%s: the forecast is %+v, want %+v", c.name, got, want)
		}
	}
	var s stalls
	r := work.State{Batch: store.Batch{ID: "b"}}
	changes, last := 0, store.Forecast{}
	for at := time.Duration(0); at < time.Hour; at += time.Second {
		s.begin()
		if got := s.doubt(start.Add(at), &r, hanging, true, soon); got != last {
			changes, last = changes+1, got
		}
		s.end()
	}
	if changes > 30 {
		t.Errorf("in an hour the forecast changed %d times", changes)
	}
}
