package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// A runner whose models change all the time leaves nothing behind. A batch whose model remains is
// not affected.
func TestModelsThatChangeAreDropped(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow})
	now := time.Unix(1_000_000, 0)
	var inFlightLines []Start
	step := func(ev Event) {
		now = now.Add(10 * time.Millisecond)
		inFlightLines = append(inFlightLines, p.Step(now, ev).Start...)
	}
	batch := func(id, model string) Event {
		return BatchPut{Batch{ID: id, Tenant: "t", Created: now, Models: []ModelLines{
			{Model: model, Lines: 1000}}}}
	}
	step(batch("stays", "stays"))
	lines := make([]Line, 900)
	for i := range lines {
		lines[i] = Line{Slot: i, PromptTokens: 10}
	}
	step(Loaded{Key: JobKey{"stays", "stays"}, Lines: lines})
	served := 0
	for i := range 200 {
		odd := fmt.Sprintf("odd-%d", i)
		step(RunnerUp{Runner: "r", Models: []string{odd, "stays"}})
		id := fmt.Sprintf("batch-%d", i)
		step(batch(id, odd))
		step(Loaded{Key: JobKey{id, odd}, Lines: lines[:3], Chunk: i + 1})
		for range 3 { // and one stays in flight while the names change
			first := inFlightLines[0]
			inFlightLines = inFlightLines[1:]
			served++
			step(&Finished{Start: first, Outcome: Succeeded, Status: 200, OutputTokens: 5,
				Latency: time.Second})
		}
		step(BatchGone{Batch: id})
	}
	if len(p.pools) > maxEmptyPools+1 || len(p.outputs) > maxEmptyPools+2 || len(p.jobs) != 1 ||
		len(p.runners) != 1 {
		t.Errorf("%d pools, means of %d models, %d jobs and %d runners remain", len(p.pools),
			len(p.outputs), len(p.jobs), len(p.runners))
	}
	if n := len(p.jobs["stays/stays"].pools); n > maxEmptyPools+1 {
		t.Errorf("the job is in %d pools", n)
	}
	if served != 600 {
		t.Errorf("%d lines were served meanwhile", served)
	}
	step(RunnerGone{Runner: "r"})
	if s, _ := p.Status(now, "stays"); s.Waiting != NoRunner {
		t.Errorf("without a runner the batch waits for %q", s.Waiting)
	}
	step(RunnerUp{Runner: "r", Models: []string{"stays"}})
	last := inFlightLines[len(inFlightLines)-1]
	inFlightLines = nil
	if step(&Finished{Start: last, Outcome: Succeeded, Status: 200, OutputTokens: 5}); len(
		inFlightLines) == 0 {
		t.Error("nothing starts on a runner of a model whose pools were forgotten")
	}
}
