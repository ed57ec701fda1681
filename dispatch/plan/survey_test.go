package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// poolOfSurvey returns a pool of a survey.
func poolOfSurvey(t *testing.T, p *Planner, name string) PoolSurvey {
	t.Helper()
	for _, of := range p.Survey(noon).Pools {
		if of.Name == name {
			return of
		}
	}
	t.Fatalf("the survey has no pool %q", name)
	return PoolSurvey{}
}

func TestSurveyShowsPoolsAndRunners(t *testing.T) {
	p := ofPools(t, map[string]int{"batch": 2})
	cost := p.cfg.Cost
	began := p.Step(noon, RunnerUp{Runner: "b", Pool: "batch", Models: []string{"m"}}).Start
	lines := append([]Start(nil), began...)
	p.Step(noon, RunnerUp{Runner: "free", Models: []string{"m", "n"}})
	p.Step(noon, RunnerDrain{Runner: "b", Draining: true})
	p.Step(noon, &Finished{Start: lines[0], Outcome: Succeeded, Status: 200, InputTokens: 100,
		CachedTokens: 30, OutputTokens: 50, Latency: time.Second})
	later := noon.Add(3 * time.Second)
	got := p.Survey(later)
	want := Survey{At: later, Jobs: p.Demand(),
		Pools: []PoolSurvey{
			{Name: "batch", Named: true, Models: []string{"m"}, InFlight: 1,
				Harvested: cost.Work(100, 50)},
			{Name: "m", Models: []string{"m", "n"}, InFlight: 1},
		},
		Runners: []RunnerSurvey{
			{ID: "b", Pool: "batch", Models: []string{"m"}, Since: noon, InFlight: 1,
				Progress: 3000, Draining: true,
				Served: Served{Requests: 1, PromptTokens: 70, OutputTokens: 50}},
			{ID: "free", Pool: "m", Models: []string{"m", "n"}, Since: noon, InFlight: 1,
				Progress: 3000},
		}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if job := got.Jobs[0]; job.Lines != 99 || job.InFlight != 2 || job.Tenant != "t" {
		t.Errorf("the job is %+v", job)
	}
	// Others than batch lines share the runner.
	reading := flowcontrol.NoReading(flowcontrol.Metrics, later)
	reading.Running, reading.Waiting = 3, 1
	p.Step(later, Reading{Runner: "b", Reading: &reading})
	if got := p.Survey(later).Runners[0].Progress; got != 750 {
		t.Errorf("the progress is %v ms, want the age of one line shared by four requests", got)
	}
}

// What a pool has harvested only grows: while its runners and models come and go, and when another
// planner takes the place of this one.
func TestHarvestOnlyGrows(t *testing.T) {
	totals := NewTotals()
	begin := func() *Planner {
		p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(),
			Flow: flowcontrol.DefaultConfig(), Totals: totals})
		return p
	}
	p := begin()
	cost := p.cfg.Cost
	p.pools = nil
	p.Step(noon, BatchPut{Batch{ID: "b", Tenant: "t", Created: noon,
		Models: []ModelLines{{Model: "m", Lines: 9, PromptTokens: 90}}}})
	flow := flowcontrol.DefaultConfig()
	flow.Policy = "fixed"
	p.Step(noon, Reconfigure{Config: p.cfg, Scheduler: scheduler.DefaultConfig(), Flow: flow})
	p.Step(noon, Loaded{Key: JobKey{"b", "m"}, Lines: []Line{{Slot: 0, PromptTokens: 10},
		{Slot: 1, PromptTokens: 10}}})
	up := RunnerUp{Runner: "r", Pool: "batch", Models: []string{"m"}}
	lines := append([]Start(nil), p.Step(noon, up).Start...)
	finish(p, lines[0])
	p.Step(noon, RunnerGone{Runner: "r"})
	finish(p, lines[1]) // its runner is gone
	for i := range maxEmptyPools + 1 {
		up.Models = []string{fmt.Sprint("m", i)}
		p.Step(noon, up)
	}
	p.Step(noon, RunnerGone{Runner: "r"})
	if got := poolOfSurvey(t, p, "batch").Harvested; got != 2*cost.Work(10, 5) {
		t.Errorf("the pool has harvested %v, want that of two lines", got)
	}
	if got := poolOfSurvey(t, begin(), "batch").Harvested; got != 2*cost.Work(10, 5) {
		t.Errorf("with the next planner it has harvested %v", got)
	}
}

// Tokens of lines in flight count as served, and remain so when the lines are evicted.
func TestServedCountsLinesInFlight(t *testing.T) {
	p := ofPools(t, map[string]int{"m": 1})
	start := p.Step(noon, RunnerUp{Runner: "a", Models: []string{"m"}}).Start[0]
	p.Step(noon, &FirstToken{Start: start, Latency: time.Second})
	now := noon
	for range 16 {
		now = now.Add(GapsInterval)
		p.Step(now, TokenGaps{Runner: "a", Gaps: 5, Time: GapsInterval})
	}
	served := p.Survey(now).Runners[0].Served
	if served.Requests != 0 || served.PromptTokens != 10 || served.OutputTokens < 60 ||
		served.OutputTokens > 80 {
		t.Errorf("a line in flight for 80 tokens: %+v", served)
	}
	p.Step(now, RunnerDrain{Runner: "a", Draining: true})
	p.Step(now, &Finished{Start: start, Outcome: Evicted})
	if after := p.Survey(now).Runners[0].Served; after != served {
		t.Errorf("after it was evicted %+v, before %+v", after, served)
	}
}
