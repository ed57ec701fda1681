package plan

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// Answers that fail a check show that a runner works: a line for which it gives 500 beside them is
// at fault itself, and ends soon.
func TestAnswersThatFailACheckShowThatARunnerWorks(t *testing.T) {
	b := &badRunners{runners: []string{"r"}, flow: fixedLines(4), batches: []int{200},
		bad: func(_ string, _ time.Duration, _, slot int) *Finished {
			if slot%10 == 7 {
				return &Finished{Outcome: Failed, Status: 500}
			}
			return &Finished{Outcome: CheckFailed, Status: 200, InputTokens: 50, OutputTokens: 5}
		}}
	b.run(t)
	if b.failed[0] != 200 || b.requests["r"] != 180+20*3 || b.took > time.Minute {
		t.Errorf("%d of 200 lines failed after %v and %d requests, want 240 within a minute",
			b.failed[0], b.took, b.requests["r"])
	}
}

// A line that is asked again has a longer prompt, and a runner that was failing works again.
func TestALineIsAskedAgainAfterACheck(t *testing.T) {
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(),
		Flow: fixedLines(1), Random: rand.New(rand.NewPCG(1, 2))})
	now := noon
	var started []Start
	step := func(ev Event) Verdict {
		actions := p.Step(now, ev)
		started = append(started, actions.Start...)
		return actions.Verdict
	}
	end := func(f Finished) Verdict {
		for len(started) == 0 {
			now = p.out.Wake
			step(Tick{})
		}
		f.Start, started = started[0], started[1:]
		return step(&f)
	}
	step(RunnerUp{Runner: "r", Models: []string{"m"}})
	step(BatchPut{Batch{ID: "b", Tenant: "t", Created: now, CheckAttempts: 2,
		Models: []ModelLines{{Model: "m", Lines: 1}}}})
	step(Loaded{Key: JobKey{"b", "m"}, Lines: []Line{{PromptTokens: 100}}})
	end(Finished{Outcome: Denied, Status: 401})
	if b := &p.runners["r"].breaker; !b.open {
		t.Fatalf("the breaker is %+v after 401, want it open", b)
	}
	if verdict := end(Finished{Outcome: CheckFailed, Status: 200, PromptGrowth: 40}); verdict !=
		Retry {
		t.Errorf("the verdict of the first answer is %v, want a retry", verdict)
	}
	if b := &p.runners["r"].breaker; b.open {
		t.Errorf("the breaker is %+v after an answer, want it closed", b)
	}
	if len(started) != 1 || started[0].line.prompt != 140 {
		t.Fatalf("started %+v, want the line with a prompt of 140 tokens at once", started)
	}
	if verdict := end(Finished{Outcome: CheckFailed, Status: 200}); verdict != Record {
		t.Errorf("the verdict of the second answer is %v, want that it is recorded", verdict)
	}
}
