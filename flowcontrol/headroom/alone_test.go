package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// An engine that is faster than the assumed cost model takes no longer without batch lines than
// with them. Otherwise its users might wait for the time of a slower engine until the model fits.
func TestFastEnginesAreFastAlone(t *testing.T) {
	const took = 13.0 // milliseconds
	c, runners := newPool(t, func(cfg *flowcontrol.Config) {
		cfg.SLO.TTFT, cfg.SLO.TPOT, cfg.Engine = 0, 0, flowcontrol.Engine{}
	}, "r")
	reading := flowcontrol.NoReading(flowcontrol.Metrics, noon)
	reading.Running, reading.TokenGaps, reading.TokenGapTime = 1, 0, 0
	now := noon
	for range 5 {
		now = now.Add(time.Second)
		reading.Sampled = now
		reading.TokenGaps += 1000 / took
		reading.TokenGapTime++
		c.Observe(now, &flowcontrol.Read{Runner: "r", Reading: &reading})
		c.Allowance(now)
	}
	if got := c.timeAlone(runners[0]); !near(got, took) {
		t.Errorf("iterations take %.1f ms alone, want %v", got, took)
	}
	if got, want := c.objectiveTime(), took*c.slo.Slowdown; !near(got, want) {
		t.Errorf("iterations may take %.1f ms, want %.1f", got, want)
	}
}
