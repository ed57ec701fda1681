package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// The configured limit, and what a runner has refused, are named where they limit the lines.
func TestLimitsOfARunnerAreNamed(t *testing.T) {
	c, runners := newPool(t, func(c *flowcontrol.Config) {
		own := flowcontrol.OwnConfig[Config](*c, Name)
		own.PerRunner = 8
		*c = c.Select(Name, own)
	}, "r")
	c.watched, runners[0].own.lines = true, 4
	for _, test := range []struct {
		lines, yield float64
		want         flowcontrol.Reason
	}{{4, 1, flowcontrol.ReasonGrowing}, {20, 1, flowcontrol.ReasonRunnerLimit},
		{4, 0.7, flowcontrol.ReasonShed}} {
		c.lines, runners[0].yield = test.lines, test.yield
		g := flowcontrol.RunnerAllowance{Runner: "r"}
		c.grantLines(noon, runners[0], c.poolLoad(noon), &g)
		if g.Reason != test.want {
			t.Errorf("%+v: %s with %d lines, want %s", test, g.Reason, g.Lines, test.want)
		}
	}
}

// Iterations limit the lines once they are about as long as they may be. Before, the number grows
// as fast as lines show what they cost.
func TestShortIterationsAreNoLimit(t *testing.T) {
	for _, test := range []struct {
		part float64 // of the target time
		want flowcontrol.Reason
	}{{0.5, flowcontrol.ReasonGrowing}, {0.99, ReasonTokenTime}} {
		c, runners := newPool(t, nil, "r")
		c.watched, c.lines, runners[0].own.lines = true, 8, 8
		ms := test.part * c.targetTime()
		for range 200 {
			runners[0].iterations.unstreamed(ms, time.Second, c.tuning.Pace)
		}
		g := flowcontrol.RunnerAllowance{Runner: "r"}
		c.grantLines(noon.Add(time.Minute), runners[0], poolLoad{}, &g)
		if g.Reason != test.want {
			t.Errorf("at %v of the target: %s with %d lines, want %s", test.part, g.Reason, g.Lines,
				test.want)
		}
	}
}
