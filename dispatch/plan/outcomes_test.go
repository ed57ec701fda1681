package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// A policy that looks at no users leaves it to the planner to count them. What lines add is known
// while there are none only.
func TestUsersAreCountedUnderAPolicyThatDoesNotJudge(t *testing.T) {
	flow := flowcontrol.DefaultConfig()
	flow.Policy, flow.SLO.TTFT = "fixed", time.Second
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow})
	p.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
	read := func(second int, requests, late float64) {
		at := noon.Add(time.Duration(second) * time.Second)
		p.Step(at, Reading{Model: "m", Reading: firstTokens(at, requests, late)})
	}
	want := func(when string, requests, late, estimated float64) {
		t.Helper()
		got := p.Outcomes()
		diff := cmp.Diff([]PoolOutcomes{{ID: "m", Judged: flowcontrol.Judged{
			FirstTokens: flowcontrol.Judgement{Requests: requests, Late: late,
				Estimated: estimated}}}}, got)
		if diff != "" {
			t.Errorf("%s: -want +got\n%s", when, diff)
		}
	}
	read(5, 1000, 100)
	want("requests before the first reading", 0, 0, 0)
	read(10, 1100, 105)
	want("without lines", 100, 5, 100)
	p.pools[0].inFlight = 1
	read(15, 1300, 135)
	want("beside lines", 300, 35, 100)
	p.pools[0].inFlight = 0
	read(20, 1310, 136)
	want("soon after lines", 310, 36, 100)
	read(40, 1350, 136)
	want("without lines again", 350, 36, 140)
	read(45, 50, 1)
	want("after a restart of the gateway", 350, 36, 140)
}

func TestOutcomesHaveWhatIsPromised(t *testing.T) {
	flow := flowcontrol.DefaultConfig()
	flow.SLO.Late = 0.01
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow})
	p.Step(noon, RunnerUp{Runner: "r", Models: []string{"m"}})
	if got := p.Outcomes()[0].Allowed; got != 0.01 {
		t.Errorf("allowed are %v, want slo.late", got)
	}
	p.pools[0].controlled.Shared = false
	if got := p.Outcomes()[0].Allowed; got != 0 {
		t.Errorf("allowed are %v in a pool without users", got)
	}
}

// Lines count once, with their tokens, whatever their number of tries.
func TestOutcomesCountLines(t *testing.T) {
	var o outcomes
	o.done(&Finished{Outcome: Succeeded, InputTokens: 7, OutputTokens: 3})
	o.done(&Finished{Outcome: Refused, InputTokens: 100})
	if o.lines != 2 || o.lineTokens != 10 {
		t.Errorf("%d lines, %d tokens, want 2 and 10", o.lines, o.lineTokens)
	}
}
