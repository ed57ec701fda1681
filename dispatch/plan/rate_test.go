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
	near("after an idle night", 100)
	run(&r, now, 180, 10)
	near("after three minutes at 10", 10)
}
