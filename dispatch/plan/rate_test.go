package plan

import (
	"math"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	run := func(r *rate, now time.Time, seconds int, work float64) time.Time {
		r.resume(now)
		for range seconds {
			now = now.Add(time.Second)
			r.add(now, work)
		}
		return now
	}
	var r rate
	now := run(&r, noon, 2, 100)
	if got := r.perSecond(); got != 0 {
		t.Errorf("after two seconds: %v, want 0, unknown", got)
	}
	near := func(when string, want float64) {
		t.Helper()
		if got := r.perSecond(); math.Abs(got-want) > 0.1*want {
			t.Errorf("%s: %v, want about %v", when, got, want)
		}
	}
	now = run(&r, now, 3, 100)
	near("after five seconds at 100", 100)
	now = run(&r, now, 300, 100)
	near("after five minutes at 100", 100)
	now = run(&r, now.Add(8*time.Hour), 1, 100)
	near("after eight idle hours", 100)
	run(&r, now, 180, 10)
	near("after three minutes at 10", 10)
}

// Idle hours do not change the rate of a pool.
func TestRateIgnoresIdleTime(t *testing.T) {
	w := lookAheadDriver(t, 8, 1_000_000)
	work := func(id string, lines int) {
		w.put(Batch{ID: id, Created: noon}, chunksOf(lines, 1))
		for len(w.claims)+len(w.requests) > 0 {
			for len(w.claims) > 0 {
				w.load(0, 100)
			}
			if len(w.requests) > 0 {
				w.pass(time.Second)
				w.finish(w.requests[0], Succeeded, 200, 0)
			}
		}
	}
	work("evening", 40)
	evening := w.planner.pools[0].rate.perSecond()
	w.pass(8 * time.Hour)
	work("morning", 2)
	morning := w.planner.pools[0].rate.perSecond()
	if evening == 0 || math.Abs(morning-evening) > 0.2*evening {
		t.Errorf("rate %v before the idle hours, %v after", evening, morning)
	}
}
