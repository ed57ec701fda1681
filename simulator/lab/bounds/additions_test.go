package bounds

import (
	"math"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/report"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// run is a result of a seed's hour with so many million tokens and points of loss.
func run(seed uint64, millions, loss float64, edit ...func(*simulator.Result)) simulator.Result {
	r := simulator.Result{Seed: seed, Hours: 1, Loss: loss, GPUHours: 10, NoBatchGPUHours: 8,
		NoBatch:     simulator.Interactive{Attainment: 1},
		Interactive: simulator.Interactive{Attainment: 1 - loss/100},
		Batch:       simulator.Batch{Useful: int64(millions * 1e6)}}
	for _, f := range edit {
		f(&r)
	}
	return r
}

// judged returns the report on one policy with the same bounds on each seed.
func judged(
	goals scenario.Goals, oracles []oracle.Bound, runs ...simulator.Result,
) *report.Scenario {
	s := report.Scenario{Name: "s", Hours: 1,
		Policies: []report.Policy{{Name: "headroom", Flow: "headroom", Runs: runs}}}
	b := Scenario{Name: "s"}
	for _, r := range runs {
		s.Seeds = append(s.Seeds, report.Seed{Seed: r.Seed, NoBatch: r.NoBatch})
		b.Seeds = append(b.Seeds, Seed{r.Seed, oracles})
	}
	s.SetGoals(goals)
	r := Report{Report: report.Report{Scenarios: []report.Scenario{s}}, Bounds: []Scenario{b}}
	r.judge()
	return &r.Scenarios[0]
}

func TestGoalsAreJudgedByBounds(t *testing.T) {
	due := func(name string, fate simulator.JobOutcome, flagged float64) func(*simulator.Result) {
		return func(r *simulator.Result) {
			r.Jobs = append(r.Jobs, simulator.Job{Name: name, Submitted: 100, Deadline: 3000,
				Outcome: fate, Flagged: flagged})
		}
	}
	bounds := []oracle.Bound{{Name: "G", Useful: 40e6},
		{Name: "LP", GPUHours: 9.5, BatchGPUHours: 1.6, Infeasible: []string{"dream"}}}
	for _, test := range []struct {
		name   string
		goals  scenario.Goals
		runs   []simulator.Result
		figure float64
		met    bool
	}{
		{"mean share of an oracle", scenario.Goals{HarvestOfGateway: 0.95},
			[]simulator.Result{run(1, 40, 0), run(2, 37, 0)}, 0.9625, true},
		{"the harvest of an unsafe run", scenario.Goals{HarvestOfGateway: 0.5},
			[]simulator.Result{run(1, 40, 0), run(2, 40, 1.1)}, math.NaN(), false},
		{"an oracle not asked", scenario.Goals{HarvestOfEngine: 0.5},
			[]simulator.Result{run(1, 40, 0)}, math.NaN(), false},
		{"deadlines, the infeasible left out", scenario.Goals{Deadlines: 1}, []simulator.Result{
			run(1, 30, 0, due("a", simulator.Finished, 0), due("dream", simulator.Expired, 0)),
			run(2, 30, 0, due("a", simulator.Expired, 0)),
		}, 0.5, false},
		{"flagged in time", scenario.Goals{FlaggedWithin: 60e9},
			[]simulator.Result{run(1, 30, 0, due("dream", simulator.Expired, 150))}, 50, true},
		{"none to flag", scenario.Goals{FlaggedWithin: 60e9},
			[]simulator.Result{run(1, 30, 0, due("a", simulator.Finished, 0))}, 0, true},
		{"never flagged", scenario.Goals{FlaggedWithin: 60e9},
			[]simulator.Result{run(1, 30, 0, due("dream", simulator.Expired, 0))}, math.NaN(),
			false},
		{"GPU hours", scenario.Goals{GPUHours: 1.1}, []simulator.Result{run(1, 30, 0)}, 10 / 9.5,
			true},
		{"GPU hours for batch work", scenario.Goals{BatchGPUHours: 1.05},
			[]simulator.Result{run(1, 30, 0)}, 1.25, false},
	} {
		goals := judged(test.goals, bounds, test.runs...).Policies[0].Goals
		if len(goals) != 1 {
			t.Errorf("%s: %d goals judged", test.name, len(goals))
			continue
		}
		g := goals[0]
		if figure := float64(g.Figure); g.Met != test.met ||
			!(math.Abs(figure-test.figure) < 1e-9 || math.IsNaN(figure) &&
				math.IsNaN(test.figure)) {
			t.Errorf("%s: %v, met %v, want %v, %v", test.name, figure, g.Met, test.figure, test.met)
		}
	}
}

func TestScoresAreSharesOfTheStrictestOracle(t *testing.T) {
	s := judged(scenario.Goals{}, []oracle.Bound{{Name: "G", Useful: 30e6},
		{Name: "E", Useful: 50e6}, {Name: "F", Useful: 60e6}}, run(1, 25, 0))
	if s.Best != "oracle E" || s.Policies[0].Score.Mean != 0.5 {
		t.Errorf("the score is %v of %s, want 0.5 of oracle E", s.Policies[0].Score.Mean, s.Best)
	}
}

// Only the first seed was searched.
func TestSharesAreOfTheSeedsThatWereSearched(t *testing.T) {
	s := report.Scenario{Policies: []report.Policy{{Name: "headroom",
		Runs: []simulator.Result{run(1, 40, 0), run(2, 30, 0)}}}}
	b := Scenario{Seeds: []Seed{{1, []oracle.Bound{{Name: "G", Useful: 50e6}}}, {Seed: 2}}}
	b.addShares(&s)
	if len(b.Shares) != 1 || b.Shares[0].Mean != 0.8 {
		t.Errorf("shares of oracles %+v, want 0.8 of G", b.Shares)
	}
}

func TestBeatenOraclesAreWarnedOf(t *testing.T) {
	bounds := []oracle.Bound{{Name: "E", Useful: 40e6}, {Name: "F", Useful: 40e6, Margin: 0.05},
		{Name: "LP", GPUHours: 9}}
	for _, test := range []struct {
		name string
		run  simulator.Result
		want []string
	}{
		{"within all", run(1, 39, 0), nil},
		{"above one, within the margin of the other", run(1, 41, 0), []string{"ORACLE E"}},
		{"above both", run(1, 43, 0), []string{"ORACLE E", "ORACLE F"}},
		{"above both, at the cost of users", run(1, 43, 1.2), nil},
		{"cheaper than possible", run(1, 39, 0, func(r *simulator.Result) {
			r.GPUHours = 8.5
		}), []string{"ORACLE LP"}},
	} {
		aloud := judged(scenario.Goals{}, bounds, test.run).Warnings
		if len(aloud) != len(test.want) {
			t.Errorf("%s: said %q, want %q", test.name, aloud, test.want)
			continue
		}
		for i, want := range test.want {
			if !strings.HasPrefix(aloud[i], want+" IS WRONG: headroom ") {
				t.Errorf("%s: said %q, want %s", test.name, aloud[i], want)
			}
		}
	}
}

// A bound of an oracle with fewer means is attained, so it proves another oracle wrong if that
// is more.
func TestOraclesThatBeatOneAnotherAreWarnedOf(t *testing.T) {
	for _, test := range []struct {
		g, e, f float64
		want    string
	}{
		{38e6, 39e6, 40e6, ""},
		{39.5e6, 39e6, 40e6, "ORACLE E IS WRONG: oracle G harvested 101"},
		{38e6, 41e6, 40e6, ""}, // within the margin of F
		{38e6, 43e6, 40e6, "ORACLE F IS WRONG: oracle E "},
	} {
		bounds := []oracle.Bound{{Name: "E", Useful: test.e}, {Name: "G", Useful: test.g},
			{Name: "F", Useful: test.f, Margin: 0.05}}
		aloud := judged(scenario.Goals{}, bounds, run(1, 30, 0)).Warnings
		if got := strings.Join(aloud, "\n"); !strings.HasPrefix(got, test.want) ||
			(got == "") != (test.want == "") || len(aloud) > 1 {
			t.Errorf("G %v, E %v, F %v: said %q, want %q", test.g, test.e, test.f, aloud, test.want)
		}
	}
}
