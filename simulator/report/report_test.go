package report_test

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/report"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// run is a result of a seed's hour with so many million tokens and points of loss.
func run(seed uint64, millions, loss float64, edit ...func(*simulator.Result)) simulator.Result {
	r := simulator.Result{
		Seed: seed, Hours: 1, Loss: loss,
		NoBatch: simulator.Interactive{Requests: 900, Attainment: 1,
			TTFT: simulator.Quantiles{P99: 1000}},
		Interactive: simulator.Interactive{Attainment: 1 - loss/100,
			TTFT: simulator.Quantiles{P99: 1100}}, GPUHours: 10, NoBatchGPUHours: 8,
		Batch: simulator.Batch{Useful: int64(millions * 1e6)},
	}
	for _, f := range edit {
		f(&r)
	}
	return r
}

func policy(name string, runs ...simulator.Result) report.Policy {
	flow, _, more := strings.Cut(name, " ")
	return report.Policy{Name: name, Flow: flow, Baseline: more, Runs: runs}
}

func scenarioWith(
	name string, goals scenario.Goals, policies ...report.Policy,
) report.Scenario {
	s := report.Scenario{Name: name, File: name + ".yaml", Hours: 1, Policies: policies}
	for _, r := range policies[0].Runs {
		s.Seeds = append(s.Seeds, report.Seed{Seed: r.Seed, NoBatch: r.NoBatch})
	}
	s.SetGoals(goals)
	return s
}

func judge(stories ...report.Scenario) report.Report {
	r := report.Report{Scenarios: stories}
	r.Judge()
	return r
}

func TestGoals(t *testing.T) {
	due := func(name string, fate simulator.JobOutcome, flagged float64) func(*simulator.Result) {
		return func(r *simulator.Result) {
			r.Jobs = append(r.Jobs, simulator.Job{Name: name, Submitted: 100, Deadline: 3000,
				Outcome: fate,
				Flagged: flagged})
		}
	}
	ttft := func(alone, with float64) func(*simulator.Result) {
		return func(r *simulator.Result) {
			r.NoBatch.TTFT.P99, r.Interactive.TTFT.P99 = alone, with
		}
	}
	known := report.Additions{Infeasible: [][]string{{"dream"}, {"dream"}},
		Figures: map[string]report.GoalFigures{"headroom": {
			"harvest_of_gateway": {Figure: 0.9625, Note: "mean"}, "gpu_hours": {Figure: 1.05},
			"batch_gpu_hours": {Figure: 1.25}, "flagged_within": {Figure: 50}}}}
	for _, test := range []struct {
		name   string
		goals  scenario.Goals
		runs   []simulator.Result
		figure float64
		met    bool
	}{
		{"the worst seed's loss", scenario.Goals{Loss: 1}, []simulator.Result{run(1, 30, 0.2),
			run(2, 30, 1.1)}, 1.1, false},
		{"loss at the bound", scenario.Goals{Loss: 1}, []simulator.Result{run(1, 30, 1)}, 1, true},
		{"TTFT", scenario.Goals{TTFT: 1.15}, []simulator.Result{run(1, 30, 0)}, 1.1, true},
		{"TTFT, too late both ways", scenario.Goals{TTFT: 1.25, TTFTAbove: 50e6},
			[]simulator.Result{run(1, 30, 0, ttft(100, 145)), run(2, 30, 0, ttft(40, 91))},
			91. / 40, false},
		{"TTFT, late one way or the other", scenario.Goals{TTFT: 1.25, TTFTAbove: 50e6},
			[]simulator.Result{run(1, 30, 0, ttft(1000, 1240)), run(2, 30, 0, ttft(40, 90))}, 2.25,
			true},
		{"a figure that the caller knows", scenario.Goals{HarvestOfGateway: 0.95},
			[]simulator.Result{run(1, 40, 0)}, 0.9625, true},
		{"the harvest of an unsafe run", scenario.Goals{HarvestOfGateway: 0.5},
			[]simulator.Result{run(1, 40, 0), run(2, 40, 1.1)}, math.NaN(), false},
		{"a figure that nobody knows", scenario.Goals{HarvestOfEngine: 0.5},
			[]simulator.Result{run(1, 40, 0)}, math.NaN(), false},
		{"no cap run", scenario.Goals{HarvestOfCap: 1.25}, []simulator.Result{run(1, 40, 0)},
			math.NaN(), false},
		{"deadlines, the hopeless left out", scenario.Goals{Deadlines: 1}, []simulator.Result{
			run(1, 30, 0, due("a", simulator.Finished, 0), due("dream", simulator.Expired, 0)),
			run(2, 30, 0, due("a", simulator.Expired, 0)),
		}, 0.5, false},
		{"flagged in time", scenario.Goals{FlaggedWithin: 60e9},
			[]simulator.Result{run(1, 30, 0, due("dream", simulator.Expired, 150))}, 50, true},
		{"waste", scenario.Goals{Wasted: 0.02},
			[]simulator.Result{run(1, 30, 0, func(r *simulator.Result) {
				r.Batch.Wasted = 10e6
			})}, 0.25, false},
		{"GPU hours", scenario.Goals{GPUHours: 1.1}, []simulator.Result{run(1, 30, 0)}, 1.05,
			true},
		{"GPU hours for batch work", scenario.Goals{BatchGPUHours: 1.05},
			[]simulator.Result{run(1, 30, 0)}, 1.25, false},
	} {
		s := scenarioWith("s", test.goals, policy("headroom", test.runs...))
		s.Additions = known
		goals := judge(s).Scenarios[0].Policies[0].Goals
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

// Without the caller's help every deadline counts, and goals that need oracles are missed.
func TestGoalsWithoutAdditions(t *testing.T) {
	due := func(r *simulator.Result) {
		r.Jobs = []simulator.Job{{Name: "dream", Deadline: 3000, Outcome: simulator.Expired},
			{Name: "a", Deadline: 3000, Outcome: simulator.Finished}}
	}
	r := judge(scenarioWith("s", scenario.Goals{Deadlines: 1, FlaggedWithin: 60e9, GPUHours: 1.1,
		HarvestOfEngine: 0.5}, policy("headroom", run(1, 30, 0, due))))
	for _, g := range r.Scenarios[0].Policies[0].Goals {
		if g.Name == "deadlines met, share" {
			if g.Figure != 0.5 || g.Met {
				t.Errorf("deadlines: %+v, want half of them", g)
			}
		} else if g.Met || g.Text() != "not judged" || !strings.Contains(g.Note, "tidefill-lab") {
			t.Errorf("%+v, want no figure and who has it", g)
		}
	}
}

func TestBestSettings(t *testing.T) {
	stories := []report.Scenario{
		scenarioWith("light", scenario.Goals{}, policy("headroom", run(1, 40, 0)),
			policy("fixed n=8", run(1, 10, 0)), policy("fixed n=16", run(1, 20, 0.5)),
			policy("fixed n=32", run(1, 50, 9))),
		scenarioWith("heavy", scenario.Goals{}, policy("headroom", run(1, 30, 0)),
			policy("fixed n=8", run(1, 12, 0.9)), policy("fixed n=16", run(1, 15, 4)),
			policy("fixed n=32", run(1, 15, 40))),
	}
	r := judge(stories...)
	for i, want := range []string{"fixed n=16", "fixed n=8"} {
		for _, p := range r.Scenarios[i].Policies {
			if p.BestHere != (p.Name == want || p.Name == "headroom" && p.BestHere) {
				t.Errorf("%s: %s best %v, want %s", r.Scenarios[i].Name, p.Name, p.BestHere, want)
			}
			if p.Flow == "fixed" && p.BestOverall != (p.Name == "fixed n=8") {
				t.Errorf("%s: %s best over all %v, want fixed n=8", r.Scenarios[i].Name, p.Name,
					p.BestOverall)
			}
		}
	}
	i := slices.IndexFunc(r.Overall, func(o report.Overall) bool { return o.Name == "headroom" })
	// 40/20 and 30/12; 40/10 and 30/12.
	if o := r.Overall[i]; math.Abs(float64(o.OfCaps)-math.Sqrt(5)) > 1e-9 ||
		math.Abs(float64(o.OfCap)-math.Sqrt(10)) > 1e-9 || o.Score != 1 {
		t.Errorf("headroom over all: %+v", o)
	}
	if !slices.ContainsFunc(r.Overall, func(o report.Overall) bool {
		return o.Name == "fixed, best of each scenario" && o.Scenarios == 2
	}) {
		t.Errorf("the best of each scenario is missing: %+v", r.Overall)
	}
}

// Settings that ran with the first seed only may be the best to try next, but are not the best of a
// report.
func TestSettingsThatRanWithFewerSeeds(t *testing.T) {
	known := scenarioWith("light", scenario.Goals{},
		policy("headroom", run(1, 40, 0), run(2, 30, 0)),
		policy("fixed n=8", run(1, 10, 0), run(2, 10, 0)), policy("fixed n=16", run(1, 20, 0.5)))
	r := report.Report{Scenarios: []report.Scenario{known}}
	best := func() (here, overall string) {
		for _, p := range r.Scenarios[0].Policies {
			if p.Flow == "fixed" && p.BestHere {
				here = p.Name
			}
			if p.Flow == "fixed" && p.BestOverall {
				overall = p.Name
			}
		}
		return here, overall
	}
	r.Lead()
	if here, overall := best(); here != "fixed n=16" || overall != "fixed n=16" {
		t.Errorf("%q leads here and %q over all, want fixed n=16", here, overall)
	}
	r.Judge()
	if here, overall := best(); here != "fixed n=8" || overall != "fixed n=8" {
		t.Errorf("%q is the best here and %q over all, want fixed n=8", here, overall)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`fixed n=8 .*best here and over all`,
		`fixed n=16 .*the first 1 seed`} {
		if !regexp.MustCompile(want).MatchString(text.String()) {
			t.Errorf("the table lacks %q:\n%s", want, text.String())
		}
	}
}

// The report begins with what each policy harvests and costs, and with the best of those that cost
// no more than is allowed.
func TestConclusion(t *testing.T) {
	nobody := func(r *simulator.Result) { r.NoBatch.Requests = 0 }
	late := func(r *simulator.Result) { r.WorstLoss = 21.9 }
	due := func(fate simulator.JobOutcome) func(*simulator.Result) {
		return func(r *simulator.Result) {
			r.Jobs = []simulator.Job{{Name: "a", Deadline: 3000, Outcome: fate}}
		}
	}
	for _, test := range []struct {
		name  string
		goals scenario.Goals
		all   []report.Policy
		want  []string
	}{
		{"the best keeps the goal", scenario.Goals{Loss: 0.5}, []report.Policy{
			policy("headroom", run(1, 26, 0.186)), policy("fixed", run(1, 45, 0.6))}, []string{
			"headroom harvests 26.00 M useful batch tokens an hour; " +
				"users lose 0.19 of the 0.5 points allowed.",
			"fixed harvests 45.00 M useful batch tokens an hour; " +
				"users lose 0.60 points, more than the 0.5 points allowed.",
			"The best within what is allowed is headroom."}},
		{"without a goal a point is allowed, and baselines may be the best", scenario.Goals{},
			[]report.Policy{policy("headroom", run(1, 26, 0)), policy("fixed n=3", run(1, 45, 1))},
			[]string{"headroom harvests 26.00 M useful batch tokens an hour; " +
				"users lose none of the 1 point allowed.",
				"The best within what is allowed is fixed n=3."}},
		{"the worst seed counts", scenario.Goals{Loss: 0.5}, []report.Policy{
			policy("headroom", run(1, 0.03, 0.3), run(2, 0.01, 0.6))}, []string{
			"headroom harvests 20,000 useful batch tokens an hour; users lose 0.45 points, " +
				"0.60 on the worst of 2 seeds, more than the 0.5 points allowed.",
			"That is more than is allowed."}},
		{"other goals about users count", scenario.Goals{Worst5Minutes: 10, Wasted: 0.01},
			[]report.Policy{policy("headroom", run(1, 26, 0.5, late))}, []string{
				"headroom harvests 26.00 M useful batch tokens an hour; users lose 0.50 of the " +
					"1 point allowed; loss in the worst 5 minutes, points: 21.90 (asked: ≤ 10).",
				"That is more than is allowed."}},
		{"nothing is within what is allowed", scenario.Goals{}, []report.Policy{
			policy("headroom", run(1, 26, 3)), policy("fixed", run(1, 45, 2))}, []string{
			"headroom harvests 26.00 M useful batch tokens an hour; " +
				"users lose 3.00 points, more than the 1 point allowed.",
			"fixed harvests 45.00 M useful batch tokens an hour; " +
				"users lose 2.00 points, more than the 1 point allowed.",
			"No policy stays within what is allowed; fixed costs users the least, 2.00 points."}},
		{"deadlines come before the harvest", scenario.Goals{}, []report.Policy{
			policy("headroom", run(1, 26, 0, due(simulator.Finished))),
			policy("fixed", run(1, 45, 0, due(simulator.Expired)))}, []string{
			"headroom harvests 26.00 M useful batch tokens an hour and meets 1 of 1 deadline; " +
				"users lose none of the 1 point allowed.",
			"fixed harvests 45.00 M useful batch tokens an hour and meets 0 of 1 deadline; " +
				"users lose none of the 1 point allowed.",
			"The best within what is allowed is headroom."}},
		{"nobody is there", scenario.Goals{}, []report.Policy{
			policy("headroom", run(1, 26, 0, nobody))}, []string{"headroom harvests 26.00 M " +
			"useful batch tokens an hour; there are no interactive users.",
			"That is within what is allowed."}},
	} {
		r := judge(scenarioWith("s", test.goals, test.all...))
		if got := r.Scenarios[0].Conclusion; !slices.Equal(got, test.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", test.name, got, test.want)
		}
		var text bytes.Buffer
		if err := r.Text(&text); err != nil {
			t.Fatal(err)
		}
		if want := strings.Join(test.want, "\n") + "\n\n"; !strings.HasPrefix(text.String(),
			want) {
			t.Errorf("%s: the text does not begin with it:\n%s", test.name, &text)
		}
	}
}

// A goal that was not judged is neither met nor missed.
func TestGoalsThatWereNotJudged(t *testing.T) {
	r := judge(scenarioWith("s", scenario.Goals{Loss: 1, HarvestOfEngine: 0.5},
		policy("headroom", run(1, 30, 0))))
	if got := r.Overall[0].GoalsText(); got != "1 of 1, 1 not judged" {
		t.Errorf("goals met: %q", got)
	}
}

// The reason why goals were not judged stands once, with its policies if it is not that of all.
// Without baselines and oracles there is no score.
func TestReasonsOfUnjudgedGoalsStandOnce(t *testing.T) {
	other := policy("aimd", run(1, 30, 2))
	other.Baseline = false
	s := scenarioWith("s", scenario.Goals{HarvestOfEngine: 0.5, FlaggedWithin: 60e9, GPUHours: 1.1},
		policy("headroom", run(1, 30, 0)), other)
	text := func(s report.Scenario) string {
		var text strings.Builder
		r := judge(s)
		if err := r.Text(&text); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	got := text(s)
	for _, want := range []string{
		"\nnot judged of headroom: harvest, share of oracle E: only oracles",
		"\nnot judged of aimd: harvest, share of oracle E: the policy loses more than 1 point",
		"\nnot judged: infeasible jobs flagged after, seconds; GPU hours, times the LP's: only",
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("the text lacks %q, or has it twice:\n%s", want, got)
		}
	}
	if strings.Contains(got, "\nscore ") {
		t.Errorf("there is a score without a measure:\n%s", got)
	}
	s.Additions.Best, s.Additions.BestName = []float64{60e6}, "an oracle"
	if got := text(s); !strings.Contains(got, "\nscore ") {
		t.Errorf("there is no score beside an oracle:\n%s", got)
	}
}

func TestPoliciesWarnInTheReport(t *testing.T) {
	warned := func(r *simulator.Result) {
		r.Warnings = []simulator.PolicyWarning{{Pool: "chat", Code: "slow", Text: "too slow",
			From: 180, Minutes: 4}}
	}
	said := judge(scenarioWith("s", scenario.Goals{}, policy("headroom", run(3, 10, 0, warned)),
		policy("fixed n=1", run(3, 10, 0, warned)))).Scenarios[0].Warnings
	if want := "POLICY WARNING, headroom, seed 3, slow: in pool chat, from 3m00s: too slow"; len(
		said) != 1 || said[0] != want {
		t.Errorf("warnings are %q, want %q", said, want)
	}
}

// One seed in which a policy is unsafe, or one scenario, ranks it below all that are safe.
func TestUnsafePoliciesRankBelowSafeOnes(t *testing.T) {
	r := judge(
		scenarioWith("a", scenario.Goals{HarvestOfCap: 1},
			policy("headroom", run(1, 40, 0), run(2, 40, 0)),
			policy("fixed n=1", run(1, 1, 0), run(2, 1, 0.2)),
			policy("fixed n=8", run(1, 30, 0.9), run(2, 30, 1.05)),
			policy("fixed n=9", run(1, 35, 0.9), run(2, 35, 1.04))),
		scenarioWith("b", scenario.Goals{HarvestOfCap: 1}, policy("headroom", run(1, 40, 3)),
			policy("fixed n=8", run(1, 30, 1.6)), policy("fixed n=9", run(1, 31, 1.7))))
	for _, p := range r.Scenarios[0].Policies {
		if p.Baseline && p.BestHere != (p.Name == "fixed n=1") {
			t.Errorf("%s, score %v: best here %v, want n=1", p.Name, p.Score, p.BestHere)
		}
	}
	goal := func(i int) report.Goal { return r.Scenarios[i].Policies[0].Goals[0] }
	if g := goal(0); g.Figure != 40 {
		t.Errorf("compared with the best cap: %+v, want 40 times that of one line", g)
	}
	if g := goal(1); g.Met || !math.IsNaN(float64(g.Figure)) {
		t.Errorf("no cap is safe, and the goal is %+v", g)
	}
	for _, o := range r.Overall {
		want := map[string]struct {
			score  float64
			unsafe int
		}{"headroom": {-1, 1}, "fixed n=1": {1. / 40, 0}, "fixed n=8": {(-0.025 - 0.6) / 2, 2},
			"fixed n=9": {(-0.02 - 0.7) / 2, 2}, "fixed, best of each scenario": {-0.3, 1}}[o.Name]
		if math.Abs(float64(o.Score)-want.score) > 1e-9 || o.Unsafe != want.unsafe {
			t.Errorf("%s: score %v, unsafe in %d, want %v, %d", o.Name, o.Score, o.Unsafe,
				want.score, want.unsafe)
		}
	}
}

// drawn is a report with everything in it, and names that mean harm.
func drawn() report.Report {
	const evil = `<script>alert("x")</script>&'`
	timeline := &simulator.Timeline{Every: 10}
	for i := range 30 {
		v := float64(i)
		put := func(s *simulator.Series, v float64) { *s = append(*s, v) }
		put(&timeline.At, 10*v+10)
		for _, s := range []*simulator.Series{
			&timeline.Attainment, &timeline.TTFT.P50, &timeline.TTFT.P99,
			&timeline.TPOT.P50, &timeline.TPOT.P99,
			&timeline.Running, &timeline.Waiting, &timeline.KVUsed,
			&timeline.InFlight, &timeline.Allowance, &timeline.Harvest,
			&timeline.Wanted, &timeline.Ready,
			&timeline.Starting,
		} {
			put(s, v)
		}
		timeline.Reason = append(timeline.Reason, []plan.Reason{"", "shed", evil}[i/10])
	}
	timeline.TTFT.P99[3] = math.NaN()
	timeline.Iteration = []simulator.ReplicaSeries{{Replica: evil, Values: timeline.Running}}
	timeline.Predictions = []simulator.Prediction{{Job: evil, At: simulator.Series{60, 120},
		Finish: simulator.Series{math.NaN(), 280}}}
	first := run(1, 30, 0.5, func(r *simulator.Result) {
		r.Timeline = timeline
		r.Jobs = []simulator.Job{{Name: evil, Kind: "bal", Lines: 10, Deadline: 300,
			Outcome: simulator.Expired}, {Name: "endless", Kind: "gen"}}
	})
	one := scenarioWith(evil, scenario.Goals{Loss: 1, Deadlines: 1},
		policy("headroom", first, run(2, 28, 0.7)),
		policy("fixed n=8", run(1, 10, 0), run(2, 12, 0)))
	one.About, one.Seeds[0].Timeline = evil, timeline
	one.Additions = report.Additions{Best: []float64{20e6, 20e6}, BestName: evil,
		Infeasible: [][]string{{}, {}}, Limits: []report.Limit{{Name: evil, Useful: 25e6}},
		Tables: []report.Table{{Caption: evil, Head: []string{"bound", evil},
			Rows: [][]string{{evil, "a bound of the caller"}}}, {Caption: "nothing"}}}
	other := scenarioWith("other", scenario.Goals{}, policy("headroom", run(1, 30, 50),
		run(2, 28, 0.7)),
		policy("fixed n=8", run(1, 10, 0), run(2, 12, 0)))
	return judge(one, other)
}

func TestPageNeedsNoNetwork(t *testing.T) {
	r := drawn()
	var out bytes.Buffer
	if err := r.HTML(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, forbidden := range []string{"<script", "<link", "<img", "<iframe", "src=", "url(",
		"@import", "https://", "NaN", "Inf"} {
		if strings.Contains(text, forbidden) {
			t.Errorf("the page holds %q", forbidden)
		}
	}
	for _, address := range regexp.MustCompile(`http://[^"]*`).FindAllString(text, -1) {
		if address != "http://www.w3.org/2000/svg" {
			t.Errorf("the page names %s", address)
		}
	}
	for _, want := range []string{
		`<html lang="en">`, `name="color-scheme" content="light dark"`,
		"prefers-color-scheme: dark", `class="skip" href="#main"`, `<main id="main">`,
		"default-src 'none'",
		"&lt;script&gt;", "<td>a bound of the caller</td>", "0.700 met", "NOT met",
		"Time to first token, p99 of all prompts, ms", "Batch lines in flight and allowed",
		"What limits batch work", "Jobs with a deadline", "harvest against loss",
		"Over all scenarios",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// What a screen reader needs: everything that is pointed to is there, once; every drawing has
	// words; tables have headings.
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if ids[m[1]]++; ids[m[1]] > 1 {
			t.Errorf("id %s occurs twice", m[1])
		}
	}
	for _, m := range regexp.MustCompile(
		`(?:aria-labelledby|href)="#?([^"]+)"`).FindAllStringSubmatch(text, -1) {
		for _, id := range strings.Fields(m[1]) {
			if ids[id] == 0 {
				t.Errorf("nothing has the id %s", id)
			}
		}
	}
	if drawings, titles := strings.Count(text, "<svg")-strings.Count(text, `<svg aria-hidden`),
		strings.Count(text, `<desc id=`); drawings < 10 || drawings != titles ||
		drawings != strings.Count(text, `role="img"`) {
		t.Errorf("%d drawings, %d of them described", drawings, titles)
	}
	if strings.Count(text, "<table>") != strings.Count(text, "<thead>") || !strings.Contains(text,
		`<th scope="row">`) {
		t.Error("a table has no headings")
	}
	for _, tag := range []string{"figure", "table", "svg", "section", "details", "g", "ul"} {
		if open, closed := len(regexp.MustCompile("<"+tag+"[ >]").FindAllString(text, -1)),
			strings.Count(text, "</"+tag+">"); open != closed {
			t.Errorf("%d <%s>, %d closed", open, tag, closed)
		}
	}
	var again bytes.Buffer
	if err := r.HTML(&again); err != nil || again.String() != text {
		t.Errorf("the same report is drawn differently: %v", err)
	}
}

// The page begins with the conclusion and the chart of policies; every chart over time has the run
// without batch work and each policy, and all policies are in one table.
func TestPageComparesPolicies(t *testing.T) {
	series := simulator.Series{1, 2, 3}
	timeline := func() *simulator.Timeline {
		return &simulator.Timeline{Every: 10, At: simulator.Series{10, 20, 30}, Attainment: series,
			TTFT:    simulator.QuantileSeries{P50: series, P99: series},
			TPOT:    simulator.QuantileSeries{P50: series, P99: series},
			Running: series, Waiting: series, Harvest: series, InFlight: series,
			Allowance: series, Wanted: series, Ready: series,
			Reason:    []plan.Reason{"late_lines", "late_lines", plan.Flowing},
			Iteration: []simulator.ReplicaSeries{{Replica: "a", Values: series}}}
	}
	with := func(r *simulator.Result) { r.Timeline = timeline() }
	fixed := policy("fixed", run(1, 45, 4, with))
	s := scenarioWith("flash", scenario.Goals{Loss: 1, HarvestOfEngine: 0.9},
		policy("headroom", run(1, 26, 0.2, with)), fixed)
	s.Seeds[0].Timeline = timeline()
	r := judge(s)
	var out bytes.Buffer
	if err := r.HTML(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	at := func(part string) int {
		i := strings.Index(text, part)
		if i < 0 {
			t.Fatalf("the page lacks %q", part)
		}
		return i
	}
	order := []int{at("<h1>"), at("<li>The best within what is allowed is headroom."),
		at("harvest against loss"), at("Policies side by side"), at("Time to first token")}
	if !slices.IsSorted(order) {
		t.Errorf("conclusion, chart, table and charts stand at %v", order)
	}
	figures := strings.Split(text, "<figure>")[2:]
	compared := 0
	for _, f := range figures {
		f, _, _ = strings.Cut(f, "</figure>")
		if strings.Contains(f, "Batch lines in flight and allowed") {
			if !strings.Contains(f, "late_lines 66.7 %: With more lines, too many interactive") ||
				!strings.Contains(f, "nothing 33.3 %: Lines start as others end.") {
				t.Errorf("reasons are not explained:\n%s", f)
			}
			continue
		}
		compared++
		for _, name := range []string{"no batch", "headroom", "fixed"} {
			if !strings.Contains(f, "</svg>"+name+"</li>") ||
				!strings.Contains(f, `<th scope="col">`+name+"</th>") {
				t.Errorf("a chart lacks %s:\n%s", name, f)
			}
		}
	}
	if compared != 10 {
		t.Errorf("%d charts compare policies, want 10", compared)
	}
	if !strings.Contains(text, `<td class="unjudged">not judged</td>`) {
		t.Error("a goal that was not judged is not grey")
	}
}

func TestDifferenceInWords(t *testing.T) {
	result := func(millions, loss float64, met, of int, replicas float64) report.Policy {
		return policy("headroom", run(1, millions, loss, func(r *simulator.Result) {
			r.Interactive.Attainment, r.GPUHours = 0.99-loss/100, replicas
			r.NoBatch.Attainment = 0.99
			r.Pools = []simulator.PoolUse{{Cost: 2 * replicas}}
			for i := range of {
				fate := simulator.Expired
				if i < met {
					fate = simulator.Finished
				}
				r.Jobs = append(r.Jobs, simulator.Job{Deadline: 3000, Outcome: fate})
			}
		}))
	}
	given, changed := scenarioWith("s", scenario.Goals{Loss: 0.5}, result(28, 0.3, 4, 4, 4)),
		scenarioWith("s", scenario.Goals{Loss: 0.5}, result(20, 0.6, 3, 4, 3))
	changed.SLO.Attainment = 0.995
	r := judge(given, changed)
	d := report.Differ("replicas 3 instead of 4", &r.Scenarios[0], &r.Scenarios[1])
	want := []string{"With replicas 3 instead of 4, 98.40 % instead of 98.70 % of interactive " +
		"requests would be within their objectives; batch work with headroom would cost users " +
		"0.60 points instead of 0.30 (0.5 allowed), and harvest 20.00 M useful batch tokens an " +
		"hour instead of 28.00 M; 3 instead of 4 of 4 deadlines would be met; even without batch " +
		"work only 99.00 % of requests would be within their objectives, and the scenario asks " +
		"for 99.5 %."}
	if !slices.Equal(d.Sentences, want) {
		t.Errorf("got  %q\nwant %q", d.Sentences, want)
	}
	var text bytes.Buffer
	if err := d.Text(&text); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`replica hours +4.0 +3.0 +-1.0`, `cost +8.00 +6.00 +-2.00`,
		`loss, points +0.30 +0.60 +\+0.30`, `loss in the worst 5 minutes, points .* =`} {
		if !regexp.MustCompile(row).MatchString(text.String()) {
			t.Errorf("the table lacks %q:\n%s", row, &text)
		}
	}
	same := report.Differ("nothing else", &r.Scenarios[0], &r.Scenarios[0]).Sentences[0]
	if strings.Contains(same, "instead") || strings.Count(same, ", as now") != 4 {
		t.Errorf("of the same: %s", same)
	}
}

func TestResultIsJSON(t *testing.T) {
	r := drawn()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		Version   int
		Scenarios []struct {
			Policies []struct {
				Score struct{ Mean, Worst *float64 }
				Goals []struct {
					Met    bool
					Figure *float64
				}
				Runs []struct {
					Timeline *struct {
						TTFT struct{ P99 []*float64 } `json:"ttft_ms"`
					}
				}
			}
		}
		Overall []struct {
			OfCaps *float64 `json:"harvest_of_best_caps"`
		}
	}
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	p := back.Scenarios[0].Policies[0]
	if back.Version != report.Version || *p.Score.Mean != 1.45 ||
		p.Runs[0].Timeline.TTFT.P99[3] != nil || *p.Runs[0].Timeline.TTFT.P99[4] != 4 ||
		len(p.Goals) != 2 {
		t.Errorf("read back: %+v", back)
	}
}

func TestTextIsComplete(t *testing.T) {
	r := drawn()
	var out bytes.Buffer
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"not calibrated", "interactive loss, points", "0.700 met",
		"feasible deadlines met, share", "0.000 NOT met", "\nBOUND  ", "OVER ALL SCENARIOS",
		"best here"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}
