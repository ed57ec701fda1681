package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// ofPools returns a planner that lets a runner of each pool carry so many lines, with a batch of
// 100 lines of m that are loaded.
func ofPools(t *testing.T, linesOf map[string]int) *Planner {
	t.Helper()
	limit := func(lines int) flowcontrol.Config {
		return flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: lines})
	}
	flow := limit(1)
	flow.Pools = map[string]flowcontrol.Config{}
	for pool, lines := range linesOf {
		flow.Pools[pool] = limit(lines)
	}
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow,
		Random: rand.New(rand.NewPCG(1, 2))})
	p.Step(noon, BatchPut{Batch{ID: "b", Tenant: "t", Created: noon,
		Models: []ModelLines{{Model: "m", Lines: 100, PromptTokens: 1000}}}})
	lines := make([]Line, 100)
	for i := range lines {
		lines[i] = Line{Slot: i, PromptTokens: 10}
	}
	p.Step(noon, Loaded{Key: JobKey{"b", "m"}, Lines: lines})
	return p
}

// runnersOf lists the runners of the lines.
func runnersOf(starts []Start) (ids []string) {
	for _, s := range starts {
		ids = append(ids, s.Runner)
	}
	slices.Sort(ids)
	return ids
}

func idsOf(p *Planner) (ids []string) {
	for _, s := range p.Pools() {
		ids = append(ids, s.ID)
	}
	return ids
}

// A pool without runners is kept in case they return, but not if its name is configured no more.
// Its batch waits for another pool.
func TestPoolsThatAreNotConfiguredLeave(t *testing.T) {
	p := ofPools(t, nil)
	configure := func(names ...string) {
		p.Step(noon, Reconfigure{Config: p.cfg, Scheduler: scheduler.DefaultConfig(), Flow: p.flow,
			Pools: names})
	}
	configure("early", "late", "stays")
	for _, pool := range []string{"early", "late", "stays", ""} {
		p.Step(noon, RunnerUp{Runner: "of-" + pool, Pool: pool, Models: []string{"m"}})
	}
	for _, runner := range []string{"of-early", "of-stays", "of-"} {
		p.Step(noon, RunnerGone{Runner: runner})
	}
	names := func() (all []string) {
		for _, s := range p.Pools() {
			all = append(all, s.Name)
		}
		slices.Sort(all)
		return all
	}
	if diff := cmp.Diff([]string{"", "early", "late", "stays"}, names()); diff != "" {
		t.Errorf("configured pools: -want +got:\n%s", diff)
	}
	configure("stays")
	if diff := cmp.Diff([]string{"", "late", "stays"}, names()); diff != "" {
		t.Errorf("a runner is left: -want +got:\n%s", diff)
	}
	p.Step(noon, RunnerGone{Runner: "of-late"})
	if diff := cmp.Diff([]string{"", "stays"}, names()); diff != "" {
		t.Errorf("none is left: -want +got:\n%s", diff)
	}
	got := runnersOf(p.Step(noon, RunnerUp{Runner: "new", Pool: "stays",
		Models: []string{"m"}}).Start)
	if len(got) == 0 || got[0] != "new" {
		t.Errorf("lines start on %v, want new", got)
	}
}

// Pools of different names that serve the same models have a flow control each.
func TestPoolsOfOneModelAreSeparate(t *testing.T) {
	p := ofPools(t, map[string]int{"shared": 2, "batch": 5})
	for _, up := range []struct {
		runner, pool string
		want         int
	}{{"s", "shared", 2}, {"b", "batch", 5}, {"free", "", 1}} {
		if got := len(p.Step(noon, RunnerUp{Runner: up.runner, Pool: up.pool,
			Models: []string{"m"}}).Start); got != up.want {
			t.Errorf("%d lines start in the pool %q, want %d", got, up.pool, up.want)
		}
	}
	if diff := cmp.Diff([]string{"m", "batch", "shared"}, idsOf(p)); diff != "" {
		t.Errorf("the pools are (-want +got)\n%s", diff)
	}
	moved := p.Step(noon, RunnerUp{Runner: "free", Pool: "batch", Models: []string{"m"}})
	if got := runnersOf(moved.Start); len(got) != 4 {
		t.Errorf("%v start when a runner with a line moves to the batch pool, want 4 there", got)
	}
}

// A gateway's readings of a model are for the named pools that interactive requests come to.
func TestPoolsWithoutInteractiveRequestsGetNoReadingsOfGateways(t *testing.T) {
	batch := flowcontrol.DefaultConfig()
	batch.Shared = false
	flow := flowcontrol.DefaultConfig()
	flow.Pools = map[string]flowcontrol.Config{"batch": batch}
	read := func(ev Reading) (by []string) {
		p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow})
		for _, pool := range []string{"", "a", "b", "batch"} {
			p.Step(noon, RunnerUp{Runner: "in " + pool, Pool: pool, Models: []string{"m"}})
		}
		reading := flowcontrol.NoReading(flowcontrol.Gateway, noon)
		ev.Reading = &reading
		for _, pool := range p.pools {
			before := pool.flow
			spy := &spyController{Controller: before}
			pool.flow = spy
			defer func() { pool.flow = before }()
			defer func() {
				if spy.reads > 0 {
					by = append(by, pool.name)
				}
			}()
		}
		p.Step(noon, ev)
		return by
	}
	for _, test := range []struct {
		ev   Reading
		want []string
	}{
		{Reading{}, []string{"b", "a", ""}},
		{Reading{Model: "m"}, []string{"b", "a", ""}},
		{Reading{Pool: "a", Model: "m"}, []string{"a", ""}},
		{Reading{Model: "n"}, nil},
	} {
		if diff := cmp.Diff(test.want, read(test.ev)); diff != "" {
			t.Errorf("%+v is read by (-want +got)\n%s", test.ev, diff)
		}
	}
}

// Each pool counts as late what its own objectives make late.
func TestPoolsJudgeAGatewayByTheirOwnObjectives(t *testing.T) {
	flow := flowcontrol.DefaultConfig()
	flow.SLO.TPOT = 50 * time.Millisecond
	strict := flow
	strict.SLO = flowcontrol.SLO{TTFT: time.Second, Slowdown: 1.15, Late: 0.006}
	flow.Pools = map[string]flowcontrol.Config{"strict": strict}
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow})
	for _, pool := range []string{"", "strict"} {
		p.Step(noon, RunnerUp{Runner: "in " + pool, Pool: pool, Models: []string{"m"}})
	}
	spies := map[string]*spyController{}
	for _, pool := range p.pools {
		spies[pool.name] = &spyController{Controller: pool.flow}
		pool.flow = spies[pool.name]
	}
	r := flowcontrol.NoReading(flowcontrol.Gateway, noon)
	r.FirstTokenTimes = []flowcontrol.Bucket{{Upper: 1, Count: 7}, {Upper: math.Inf(1), Count: 9}}
	r.TokenTimes = []flowcontrol.Bucket{{Upper: 0.05, Count: 3}, {Upper: math.Inf(1), Count: 8}}
	p.Step(noon, Reading{Model: "m", Reading: &r})
	unknown := flowcontrol.Attainment{Requests: math.NaN(), Late: math.NaN()}
	for pool, want := range map[string][2]flowcontrol.Attainment{
		"":       {unknown, {Requests: 8, Late: 5}},
		"strict": {{Requests: 9, Late: 2}, unknown},
	} {
		got := [2]flowcontrol.Attainment{spies[pool].last.TTFT, spies[pool].last.TPOT}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("the pool %q counts (-want +got)\n%s", pool, diff)
		}
	}
	for model, want := range map[string]flowcontrol.SLO{"m": p.pools[0].controlled.SLO, "n": {}} {
		if got := p.Objectives(model); got != want {
			t.Errorf("the objectives of %s are %+v, want %+v", model, got, want)
		}
	}
}

// spyController counts the readings that a controller gets, and keeps the last.
type spyController struct {
	flowcontrol.Controller
	reads int
	last  *flowcontrol.Reading
}

// While runners of a pool serve different models, each pool has an ID of its own, and the one with
// runners has the name.
func TestPoolsOfOneNameHaveTheirOwnIDs(t *testing.T) {
	p := ofPools(t, nil)
	up := func(runner, pool string, models ...string) {
		p.Step(noon, RunnerUp{Runner: runner, Pool: pool, Models: models})
	}
	up("one", "m", "m")
	up("two", "m", "m", "n")
	up("three", "", "m")
	if diff := cmp.Diff([]string{"m (m)", "m", "m (m,n)"}, idsOf(p)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	up("one", "m", "m", "n") // the upgrade is complete
	if diff := cmp.Diff([]string{"m (m)", "m (m, 2)", "m"}, idsOf(p)); diff != "" {
		t.Errorf("after all runners have changed (-want +got)\n%s", diff)
	}
}

// What was learned of a pool is not used for another one of the same models and runners.
func TestWhatWasLearnedBelongsToANamedPool(t *testing.T) {
	known := Learned{Name: "batch", Models: []string{"m"}, Engines: []string{"r"}, Policy: "x",
		Answers: map[string]AnswerLengths{"m": {Mean: 700, Answers: 100}}}
	for _, pool := range []string{"", "shared", "batch"} {
		p := ofPools(t, nil)
		p.Step(noon, Recall{Pools: []Recalled{{Learned: known}}})
		p.Step(noon, RunnerUp{Runner: "r", Pool: pool, Models: []string{"m"}})
		if took := p.MeanOutput("m") == 700; took != (pool == "batch") {
			t.Errorf("the pool %q took over what was learned: %t", pool, took)
		}
	}
}

func (c *spyController) Observe(now time.Time, o flowcontrol.Observation) bool {
	if read, ok := o.(*flowcontrol.Read); ok {
		c.reads, c.last = c.reads+1, read.Reading
	}
	return c.Controller.Observe(now, o)
}

// Adapters come and go, and the pool without a name keeps its own.
func TestPoolsWithoutANameHaveThatOfTheirFirstModel(t *testing.T) {
	p := ofPools(t, nil)
	ids := func(models ...string) (ids []string) {
		p.Step(noon, RunnerUp{Runner: "a", Models: models})
		for _, s := range p.Pools() {
			if len(s.Runners) > 0 {
				ids = append(ids, s.ID)
			}
		}
		return ids
	}
	for _, models := range [][]string{{"m"}, {"m", "adapter"}, {"m", "adapter", "b"}, {"m"}} {
		if got := ids(models...); !slices.Equal(got, []string{"m"}) {
			t.Errorf("with the models %q the pool is %q", models, got)
		}
	}
}
