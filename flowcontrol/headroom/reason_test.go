package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Iterations limit the lines once they are about as long as they may be. Before, the number grows
// as fast as lines show what they cost.
func TestShortIterationsAreNoLimit(t *testing.T) {
	for _, test := range []struct {
		part float64 // of the target time
		want flowcontrol.Reason
	}{{0.5, flowcontrol.ReasonLearning}, {0.99, ReasonTokenTime}} {
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
