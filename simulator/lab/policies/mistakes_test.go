package policies_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/lab/policies/model"
	"github.com/tidefill/tidefill/simulator/report"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// bundled is one of the project's scenarios, under the daemon's defaults.
func bundled(t *testing.T, name string) simulator.Setup {
	t.Helper()
	sc, err := scenario.Read("../../scenarios/"+name, scenario.Files{
		Read: os.ReadFile,
		Merge: func(file string, content []byte, s *scenario.Scenario) error {
			return config.Read(file, content, s)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	s := simulator.Setup{Scenario: sc, Seed: 1, Policy: simulator.Policy{
		Scheduler: cfg.Scheduler, Flow: cfg.FlowControl, Plan: cfg.Dispatch.PlanConfig(),
		ChunkLines: cfg.Dispatch.ChunkLines,
	}}
	own := headroom.DefaultConfig()
	own.Streams = headroom.StreamsAll // mistakes are made in the gaps between tokens
	s.Policy.Flow = s.Policy.Flow.With(headroom.Name, own)
	var known bool
	if s.Profile, known = engine.ProfileNamed(sc.Pool.Profile); !known {
		t.Fatalf("%s: no profile %q", name, sc.Pool.Profile)
	}
	return s
}

// judged runs the policy, a mistaken one and a fixed cap, and returns the report on all three.
func judged(t *testing.T, s simulator.Setup, mistaken string) report.Scenario {
	t.Helper()
	silent := func(float64) error { return nil }
	noBatch, err := simulator.RunNoBatch(s, silent)
	if err != nil {
		t.Fatal(err)
	}
	sc := report.Scenario{Name: s.Scenario.Name, Hours: s.Scenario.Horizon.Hours(),
		Seeds: []report.Seed{{Seed: s.Seed, NoBatch: noBatch.Interactive}}}
	sc.SetGoals(s.Scenario.Goals)
	run := func(name string, baseline bool, edit func(*flowcontrol.Config)) {
		at := s
		edit(&at.Policy.Flow)
		result, err := simulator.RunAgainst(noBatch, at, silent)
		if err != nil {
			t.Fatal(err)
		}
		sc.Policies = append(sc.Policies, report.Policy{Name: name, Flow: at.Policy.Flow.Policy,
			Baseline: baseline, Runs: []simulator.Result{result}})
	}
	run("sound", false, func(*flowcontrol.Config) {})
	run("mistaken", false, func(c *flowcontrol.Config) { c.Policy = mistaken })
	run("fixed", true, func(c *flowcontrol.Config) {
		*c = c.Select(fixed.Name, fixed.Config{PerRunner: 8})
	})
	all := report.Report{Scenarios: []report.Scenario{sc}}
	all.Judge()
	return all.Scenarios[0]
}

// register registers a policy with a mistake under a name, and returns the name.
func register(name, policy string, mistake flowcontroltest.Mistake) string {
	flowcontrol.Register(name, flowcontrol.Factory{
		Needs: flowcontrol.NeedsOf(policy),
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			cfg.Policy = policy
			c, err := flowcontrol.New(cfg)
			if err != nil {
				return nil, err
			}
			return mistake(c), nil
		},
	})
	return name
}

var (
	signFlipped = register("sign flipped", headroom.Name,
		flowcontroltest.SignFlipped(75*time.Millisecond))
	stalenessIgnored = register("staleness ignored", model.Name,
		flowcontroltest.StalenessIgnored)
	deadlinesAboveSafety = register("deadlines above safety", headroom.Name,
		flowcontroltest.DeadlinesAboveSafety)
)

// TestReportShowsMistakes checks that each mistake misses a goal that the sound policy meets: a
// report that cannot show a policy's mistake is of no use.
func TestReportShowsMistakes(t *testing.T) {
	for _, test := range []struct {
		mistaken string
		edit     func(*simulator.Setup)
	}{
		{signFlipped, func(*simulator.Setup) {}},
		// Token gaps would show the load to headroom; model uses metrics alone.
		{stalenessIgnored, func(s *simulator.Setup) {
			own := model.DefaultConfig()
			own.TargetShare = 0.7
			s.Policy.Flow = s.Policy.Flow.Select(model.Name, own)
			s.Scenario.Goals.HarvestOfCap = 0
			s.Scenario.Pool.Replicas = 12
			s.Scenario.Interactive.Surges = []scenario.Surge{
				{At: 8 * time.Minute, For: 12 * time.Minute, Factor: 2}}
			s.Scenario.Metrics.Faults = []scenario.MetricsFault{
				{Kind: scenario.Restamped, From: 4 * time.Minute, To: 20 * time.Minute}}
		}},
		// A job that is hard to finish in time asks for more and more lines, which a small KV cache
		// cannot hold. One that is impossible would ask for none.
		{deadlinesAboveSafety, func(s *simulator.Setup) {
			s.Scenario.Goals = scenario.Goals{Loss: 1}
			s.Scenario.Pool.Replicas, s.Scenario.Pool.KVTokens = 9, 60_000
			s.Scenario.Jobs = []scenario.Job{
				{Name: "pressing", Kind: "gen", Lines: 5_000, Window: 20 * time.Minute}}
		}},
	} {
		t.Run(test.mistaken, func(t *testing.T) {
			t.Parallel()
			s := bundled(t, "s1-steady.yaml")
			s.Scenario.Horizon = 20 * time.Minute
			s.Scenario.Goals = scenario.Goals{Loss: 1, Worst5Minutes: 5, HarvestOfCap: 1}
			test.edit(&s)
			result := judged(t, s, test.mistaken)
			t.Logf("loss: sound %.2f, mistaken %.2f points", result.Policies[0].Loss.Worst,
				result.Policies[1].Loss.Worst)
			for _, g := range result.Policies[0].Goals {
				if !g.Met {
					t.Errorf("sound: %s is %v, asked %v", g.Name, g.Figure, g.Bound)
				}
			}
			if goals := result.Policies[1].Goals; !slices.ContainsFunc(
				goals, func(g report.Goal) bool { return !g.Met }) {
				t.Errorf("mistaken, and every goal is met: %+v; sound %+v", goals,
					result.Policies[0].Goals)
			}
		})
	}
}
