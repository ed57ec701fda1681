package scaling

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

var seeds = flag.Uint64("seeds", 1, "number of seeds that TestThreeDays runs its scenarios with")

func newController(t testing.TB, change ...func(*autoscale.Config)) autoscale.Controller {
	t.Helper()
	cfg := autoscale.DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	c, err := autoscale.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func named(policy string) func(*autoscale.Config) {
	return func(c *autoscale.Config) { c.Policy = policy }
}

// candidate is a policy and its row of the table, summed over the seeds.
type candidate struct {
	name             string
	controller       func(testing.TB) autoscale.Controller
	hours, met, late float64
}

// TestThreeDays prints the table of docs/designs/scaling.md and checks the goals of the slack
// policy: hours within 1.03 of the oracle's with the same interactive scaler, those for batches
// within 1.05, no more than KEDA's queue length asks for, and every feasible deadline met.
//
//	go test ./autoscale -run TestThreeDays -v -seeds 6
func TestThreeDays(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it simulates days")
	}
	for _, surprising := range []bool{false, true} {
		for _, tokens := range []float64{2.0, 4.1, 7.2} {
			if surprising && tokens != 7.2 {
				continue
			}
			comparePolicies(t, tokens, surprising)
		}
	}
}

func comparePolicies(t *testing.T, tokens float64, surprising bool) {
	candidates := []*candidate{
		{name: "interactive only", controller: func(t testing.TB) autoscale.Controller {
			return newController(t, named("interactive"))
		}},
		{name: "slack", controller: func(t testing.TB) autoscale.Controller {
			return newController(t)
		}},
		{name: "queue length, 10,000 a replica",
			controller: func(t testing.TB) autoscale.Controller {
				return newController(t, named("queue_length"))
			}},
		{name: "queue length, 2,000 a replica",
			controller: func(t testing.TB) autoscale.Controller {
				return newController(t, named("queue_length"), func(c *autoscale.Config) {
					c.QueueLength.LinesPerReplica = 2000
				})
			}},
		{name: "separate pool", controller: func(t testing.TB) autoscale.Controller {
			return newController(t, named("separate"))
		}},
		{name: "static peak", controller: func(t testing.TB) autoscale.Controller {
			return newController(t, named("static"))
		}},
	}
	var exact, held, working float64
	feasible := 0.0
	for seed := range *seeds {
		newScenario := func() fluidScenario { return threeDays(seed, tokens, surprising) }
		can, err := newScenario().feasible()
		if err != nil {
			t.Fatal(err)
		}
		for _, ok := range can {
			if ok {
				feasible++
			}
		}
		for i, c := range candidates {
			s := newScenario()
			if c.name == "separate pool" {
				s = s.withBatchPool()
			}
			o := runFluid(s, c.controller(t))
			c.hours += o.Hours
			for k, f := range o.Fates {
				switch {
				case can[k] && f.Met:
					c.met++
				case !can[k] && (f.Flagged == 0 || f.Flagged > s.Jobs[k].At+time.Minute):
					c.late++
				}
			}
			if i > 0 {
				continue
			}
			for _, ask := range []struct {
				owned capacity
				into  *float64
			}{{capacity{}, &exact}, {capacity{Paid: o.Paid}, &held},
				{capacity{o.Paid, o.Idle}, &working}} {
				least, err := s.minimum(ask.owned)
				if err != nil {
					t.Fatal(err)
				}
				*ask.into += least.Hours
			}
		}
	}
	n := float64(*seeds)
	interactive, slack := candidates[0], candidates[1]
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	shape := "day and night"
	if surprising {
		shape = "no day like another"
	}
	fmt.Fprintf(
		w, "%.1f Gtok, %s, %d seeds\treplica-hours\tof the oracle's\tfeasible deadlines met\t\n",
		tokens, shape, *seeds)
	row := func(name string, hours float64) {
		fmt.Fprintf(w, "%s\t%.0f\t%.3f\t\t\n", name, hours/n, hours/held)
	}
	row("oracle, exact need", exact)
	row("oracle, interactive scaler held equal", held)
	row("oracle, its starts and drains too", working)
	for _, c := range candidates {
		fmt.Fprintf(w, "%s\t%.0f\t%.3f\t%.1f of %.1f\t\n", c.name, c.hours/n, c.hours/held, c.met/n,
			feasible/n)
	}
	w.Flush()
	t.Log("\n" + table.String())

	if slack.met < feasible {
		t.Errorf("%v of %v feasible deadlines met", slack.met, feasible)
	}
	if slack.hours > 1.03*held {
		t.Errorf("%.0f replica-hours, the oracle %.0f: %.3f times, want 1.03 at most", slack.hours,
			held, slack.hours/held)
	}
	if paid, least := slack.hours-interactive.hours,
		working-interactive.hours; least > 0.01*interactive.hours {
		t.Logf(
			"for batches %.0f replica-hours, %.3f times the oracle's with starts and drains, "+
				"%.3f times that without",
			paid/n, paid/least, paid/(held-interactive.hours))
		if paid > 1.05*least {
			t.Errorf("for batches %.3f times the oracle's, want 1.05 at most", paid/least)
		}
	}
	if queue := candidates[2]; queue.met == slack.met && slack.hours > queue.hours {
		t.Errorf("%.0f replica-hours, queue length %.0f", slack.hours, queue.hours)
	}
	if slack.late > 0 {
		t.Errorf("%v infeasible jobs were not reported within a minute", slack.late)
	}
}

// A model without interactive traffic: replicas start when they must, and work all the time.
func TestFromZero(t *testing.T) {
	for seed := range uint64(3) {
		s := fromZero(seed)
		can, err := s.feasible()
		if err != nil {
			t.Fatal(err)
		}
		o := runFluid(s, newController(t))
		for i, f := range o.Fates {
			if can[i] && !f.Met {
				t.Errorf("seed %d: %s is missed: %+v", seed, s.Jobs[i].ID, f)
			}
		}
		least, err := fromZero(seed).minimum(capacity{})
		if err != nil {
			t.Fatal(err)
		}
		q := runFluid(fromZero(seed), newController(t, named("queue_length")))
		t.Logf(
			"seed %d: %.1f replica-hours with %d starts, oracle %.1f, "+
				"queue length %.1f with %d of %d met",
			seed, o.Hours, o.Starts, least.Hours, q.Hours, q.Met, len(s.Jobs))
		// Each start takes three minutes and a drain one, which the oracle does without.
		if spare := o.Hours - 1.05*least.Hours; spare > float64(o.Starts)*8/60 {
			t.Errorf("seed %d: %.1f replica-hours, the oracle %.1f, with %d starts", seed, o.Hours,
				least.Hours, o.Starts)
		}
	}
}

// fromZero is two days of jobs every two to six hours, due in two to eight.
func fromZero(seed uint64) fluidScenario {
	s := threeDays(seed, 1, false).withBatchPool()
	s.Pools, s.Warm, s.Length, s.Jobs = s.Pools[1:], 0, 56*time.Hour, nil
	s.Pools[0].Max = 6
	rng := rand.New(rand.NewPCG(seed, 7))
	for at := time.Hour; at < 46*time.Hour; at += 2*time.Hour +
		time.Duration(rng.Float64()*float64(4*time.Hour)) {
		window := 2*time.Hour + time.Duration(rng.Float64()*float64(6*time.Hour))
		lines := 2000 + rng.IntN(40_000)
		s.Jobs = append(s.Jobs, job{ID: at.String(), At: at, Deadline: at + window, Lines: lines,
			Work: float64(lines) * 220})
	}
	return s
}

// A cheap pool that is reclaimed now and then does the work that has time, at less cost than the
// expensive pool alone.
func TestSpotIsCheaper(t *testing.T) {
	with, without := fromZero(1), fromZero(1)
	with.Pools = append(with.Pools, with.Pools[0])
	with.Pools[1].Name, with.Pools[1].Price, with.Pools[1].Reclaim = "spot", 0.4, 0.05
	a, b := runFluid(with, newController(t)), runFluid(without, newController(t))
	if a.Cost > 0.6*b.Cost || a.Met < b.Met {
		t.Errorf("with spot %.1f and %d deadlines met, without %.1f and %d", a.Cost, a.Met, b.Cost,
			b.Met)
	}
}

// The same scenario and policy give the same outcome.
func TestRepeatable(t *testing.T) {
	run := func() string { return fmt.Sprintf("%+v", runFluid(fromZero(3), newController(t))) }
	if a, b := run(), run(); a != b {
		t.Errorf("%s\n%s", a, b)
	}
}

func BenchmarkThreeDays(b *testing.B) {
	for b.Loop() {
		runFluid(threeDays(1, 7.2, false), newController(b))
	}
}
