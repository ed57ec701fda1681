package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// A line that is not sent, since it is damaged, does not show that the runner answers.
func TestLinesThatAreNotSentAreNoAnswers(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow,
		Random: rand.New(rand.NewPCG(1, 2))})
	now := noon
	var started []Start
	step := func(ev Event) Verdict {
		actions := p.Step(now, ev)
		started = append(started, actions.Start...)
		return actions.Verdict
	}
	end := func(f Finished) Verdict {
		f.Start, started = started[0], started[1:]
		return step(&f)
	}
	step(RunnerUp{Runner: "r", Models: []string{"m"}})
	step(BatchPut{Batch{ID: "b", Tenant: "t", Created: now,
		Models: []ModelLines{{Model: "m", Lines: 3}}}})
	step(Loaded{Key: JobKey{"b", "m"}, Lines: []Line{{Slot: 0}, {Slot: 1}, {Slot: 2}}})
	for p.runners["r"].breaker.failures < DefaultConfig().Breaker.Failures {
		end(Finished{Outcome: Unreachable})
	}
	for len(started) == 0 {
		now = p.out.Wake
		step(Tick{})
	}
	tally := *started[0].tally
	if verdict := end(Finished{Outcome: Refused, Unsent: true}); verdict != Record {
		t.Errorf("the verdict of a damaged line is %v, want that it is recorded", verdict)
	}
	b := &p.runners["r"].breaker
	if !b.open || len(started) != 1 || started[0].trial == 0 {
		t.Errorf("the breaker is %+v with %d lines in flight, want it open with another trial", b,
			len(started))
	}
	if *started[0].tally != tally {
		t.Errorf("the tally went from %+v to %+v", tally, *started[0].tally)
	}
}
