package plan

import (
	"testing"
	"time"
)

// Lines that are taken back are left, and start again only when their chunk is loaded again.
func TestUnloadedLinesAreLeft(t *testing.T) {
	p := ofPools(t, map[string]int{"m": 2}) // chunk 0 with 100 lines
	up := RunnerUp{Runner: "a", Models: []string{"m"}}
	lines := append([]Start(nil), p.Step(noon, up).Start...)
	p.Step(noon, RunnerDrain{Runner: "a", Draining: true})
	finish(p, lines[0])
	p.Step(noon, &Finished{Start: lines[1], Outcome: Failed, Status: 500}) // waits to be retried
	key := JobKey{"b", "m"}
	p.Step(noon, Unloaded{Key: key, Chunk: 0})
	later := noon.Add(time.Hour)
	p.Step(later, RunnerDrain{Runner: "a"})
	if got := p.Step(later, Tick{}).Start; len(got) > 0 {
		t.Errorf("%d lines start that were taken back", len(got))
	}
	status, _ := p.Status(later, "b")
	if left := p.Demand()[0].Lines; left != 99 || status.Ready+status.Retrying > 0 {
		t.Errorf("%d lines are left, %+v; want 99 and none ready", left, status)
	}
	again := make([]Line, 99)
	for i := range again {
		again[i] = Line{Slot: i + 1, PromptTokens: 10}
	}
	got := p.Step(later, Loaded{Key: key, Lines: again, Done: 1}).Start
	if left := p.Demand()[0].Lines; len(got) != 2 || left != 99 {
		t.Errorf("%d lines start after they were loaded again, %d are left", len(got), left)
	}
}
