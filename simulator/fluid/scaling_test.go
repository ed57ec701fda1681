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

var change = func(*autoscale.Config) {}

func table(t *testing.T, seeds uint64, sizes ...float64) {
	var sum, lpsum, isum, fsum float64
	missed := 0
	for seed := range seeds {
		for _, tokens := range sizes {
			inter := run(t, ThreeDays(seed, tokens, surprise), func(c *autoscale.Config) { change(c); c.Policy = "interactive" })
			s := ThreeDays(seed, tokens, surprise)
			o := run(t, s, change)
			l, err := s.Least(Held{inter.Paid, nil})
			fair, _ := s.Least(Held{inter.Paid, inter.Idle})
			can, _ := s.Feasible()
			n, miss, flags := 0, 0, 0
			for i, c := range can {
				if o.Fate[i].Flagged > 0 {
					flags++
				}
				if c {
					n++
					if !o.Fate[i].Met {
						miss++
						t.Log("    missed", s.Jobs[i].ID, s.Jobs[i].At, s.Jobs[i].Deadline-s.Jobs[i].At, o.Fate[i].Flagged, o.Fate[i].Risked, o.Fate[i].Finished)
					}
				}
			}
			sum += o.Hours
			lpsum += l.Hours
			fsum += fair.Hours
			isum += inter.Hours
			missed += miss
			t.Logf("%d %.1f %7.0f h lp %7.0f %v = %.3f batch %.0f lp %.0f = %.3f, missed %d of %d flags %d starts %d changes %d (%d) short %.2f %.2f", seed, tokens, o.Hours, l.Hours, err, o.Hours/l.Hours,
				o.Hours-inter.Hours, l.Hours-inter.Hours, (o.Hours-inter.Hours)/(l.Hours-inter.Hours), miss, n, flags, o.Starts, o.Changes, inter.Starts, 100*o.Short, 100*inter.Short)
		}
	}
	t.Logf("=== total %.4f batch %.4f fair %.4f missed %d inter %.0f", sum/lpsum, (sum-isum)/(lpsum-isum), (sum-isum)/(fsum-isum), missed, isum)
}

var surprise bool

func TestTable(t *testing.T) {
	table(t, 6, 7.2)
	surprise = true
	table(t, 3, 7.2)
}
