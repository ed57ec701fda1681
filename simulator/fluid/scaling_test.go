package fluid

import (
	"testing"

	"github.com/tidefill/tidefill/autoscale"
)

func run(t testing.TB, s Story, change func(*autoscale.Config)) Outcome {
	t.Helper()
	cfg := autoscale.DefaultConfig()
	change(&cfg)
	law, err := autoscale.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return Run(s, law)
}

func TestTable(t *testing.T) {
	for _, tokens := range []float64{2.0, 4.1, 7.2} {
		for _, policy := range []string{"interactive", "slack", "queue_length", "separate", "static"} {
			s := ThreeDays(1, tokens, false)
			if policy == "separate" {
				s = s.WithBatchPool()
			}
			o := run(t, s, func(c *autoscale.Config) { c.Policy = policy })
			t.Logf("%.1f %-14s %7.0f h met %2d short %.2f%% starts %d changes %d", tokens, policy, o.Hours, o.Met, 100*o.Short, o.Starts, o.Changes)
		}
	}
}
