package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Lines that may no longer run are evicted while many requests are late, not only some, and only
// where requests are those of users.
func TestOverloadEvictsLines(t *testing.T) {
	for _, test := range []struct {
		name       string
		late       float64 // of ten requests a second
		mixed      bool
		deadlines  float64
		keep       int
		evictsThem bool
	}{
		{"half are late", 5, false, 0, 0, true},
		{"deadlines want lines", 5, false, 2, 2, true},
		{"a twentieth is late", 0.5, false, 0, 0, false},
		{"lines are counted too", 5, true, 0, 0, false},
	} {
		c, runners := newPool(t, nil, "r")
		c.watched, c.lines, c.demanded = true, 20, test.deadlines
		for range 3 {
			c.Observe(noon, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 3},
				PromptTokens: 100})
		}
		if test.mixed {
			c.mixture = mixture{changes: 1000, xx: 1, xy: 1, yy: 1, at: noon}
		}
		all, late := 0.0, 0.0
		now := noon
		for range 60 {
			now = now.Add(time.Second)
			all, late = all+10, late+test.late
			r := flowcontrol.NoReading(flowcontrol.Gateway, now)
			r.TTFT = flowcontrol.Attainment{Requests: all, Late: late}
			c.Observe(now, &flowcontrol.Read{Reading: &r})
		}
		g := c.Allowance(now).Runners[0]
		if g.Lines != test.keep || g.Evict != test.evictsThem {
			t.Errorf("%s: %+v beside %d lines", test.name, g, runners[0].own.lines)
		}
	}
}
