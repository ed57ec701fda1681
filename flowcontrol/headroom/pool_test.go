package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

var noon = flowcontroltest.Noon

// newPool returns the controller of a pool with some runners, and its runners.
func newPool(
	t *testing.T, change func(*flowcontrol.Config), ids ...string,
) (c *Controller, runners []*runner) {
	t.Helper()
	cfg := flowcontrol.DefaultConfig()
	cfg.SLO.TTFT, cfg.SLO.TPOT = 2*time.Second, 100*time.Millisecond
	cfg.Policy = Name
	cfg.Engine = flowcontrol.Engine{
		CostModel: costmodel.Model{C0: 33, C1: 0.15, KV: 5e-5, P1: 0.04},
		KVTokens:  400_000, MaxSeqs: 256, MaxBatchedTokens: 2048,
	}
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	c = New(cfg)
	for _, id := range ids {
		c.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: id}})
	}
	for _, m := range c.roster.Members {
		runners = append(runners, m.State)
	}
	return c, runners
}

// near reports whether two values differ by no more than a hundredth.
func near(got, want float64) bool { return got >= 0.99*want && got <= 1.01*want }

// termOf returns the value of a term of the pool.
func termOf(t *testing.T, c *Controller, now time.Time, name string) float64 {
	t.Helper()
	for _, term := range c.Explain(now) {
		if term.Name == name {
			return term.Value
		}
	}
	t.Fatalf("no term %q", name)
	return 0
}
