package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// TestPlannerInvariants feeds random valid events. testDriver checks every step.
func TestPlannerInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawDriver(t)
		t.Repeat(map[string]func(*rapid.T){
			"runner up":    w.drawRunnerUp,
			"runner gone":  w.drawRunnerGone,
			"batch":        w.drawBatch,
			"change batch": w.drawChange,
			"batch gone":   w.drawBatchGone,
			"load":         w.drawLoad,
			"load more":    w.drawLoad,
			"more chunks":  w.drawMoreChunks,
			"finish":       w.drawFinish,
			"finish one":   w.drawFinish,
			"finish well":  w.drawFinishWell,
			"hold":         w.drawHold,
			"feasibility":  w.drawFeasibility,
			"first token":  w.drawFirstToken,
			"reading":      w.drawReading,
			"reading more": w.drawReading,
			"reconfigure":  w.drawReconfigure,
			"pass":         w.drawPass,
		})
		w.complete()
	})
}

// TestDrainStartsNothingMore drains in the middle of random events.
func TestDrainStartsNothingMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawDriver(t)
		w.runnerUp("r1", "m1", "m2", "m3")
		actions := []func(
			*rapid.T){w.drawBatch, w.drawLoad, w.drawFinish, w.drawPass, w.drawRunnerUp}
		for i := range rapid.IntRange(0, 30).Draw(t, "before") {
			w.try(t, actions[i%len(actions)])
		}
		w.draining = true
		w.step(Drain{})
		for len(w.requests) > 0 {
			w.drawFinish(t)
		}
		w.pass(time.Hour)
		if !w.wake.IsZero() {
			t.Fatalf("drained, but Wake is %v", w.wake)
		}
	})
}

// TestShedsAreCountedPerPool moves a runner from pool to pool and back. In each pool its sheds are
// counted from zero.
func TestShedsAreCountedPerPool(t *testing.T) {
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 1})
	w := newTestDriver(t, DefaultConfig(), scheduler.DefaultConfig(), flow)
	w.runnerUp("r1", "m1")
	w.put(Batch{ID: "b", Created: noon}, map[string][]int{"m1": {8}})
	w.load(0, 100)
	for _, next := range [][]string{{"m1", "m2"}, {"m1"}, {"m1", "m2"}} {
		for _, want := range []time.Duration{flowcontrol.PauseAfterShed,
			2 * flowcontrol.PauseAfterShed} {
			shed := w.now
			w.finish(w.requests[0], Shed, 429, 0)
			for len(w.requests) == 0 {
				w.pass(time.Millisecond)
			}
			if got := w.now.Sub(shed); got != want {
				t.Errorf("serving %v, the runner was paused for %v, want %v",
					w.runners["r1"].models,
					got, want)
			}
		}
		w.runnerUp("r1", next...)
	}
}

// try runs an action if it is possible.
func (w *testDriver) try(t *rapid.T, action func(*rapid.T)) {
	if len(w.claims) == 0 || len(w.requests) == 0 || len(w.batches) == 0 {
		w.drawBatch(t)
	}
	if len(w.claims) > 0 && len(w.requests) == 0 {
		w.load(0, 100)
	}
	if len(w.claims) > 0 && len(w.requests) > 0 {
		action(t)
	}
}

func drawDriver(t *rapid.T) *testDriver {
	cfg := DefaultConfig()
	cfg.LookAhead = rapid.SampledFrom([]int{1, 4, 16}).Draw(t, "look ahead")
	cfg.LookAheadTokens = rapid.SampledFrom([]int{1, 1000, 1_000_000}).Draw(t, "look ahead tokens")
	sched := scheduler.DefaultConfig()
	fifo := rapid.Bool().Draw(t, "fifo")
	if fifo {
		sched.Policy, sched.Urgency = "fifo", scheduler.UrgencyNever
	}
	flow := drawFlow(t)
	w := newTestDriver(t, cfg, sched, flow)
	w.fifo = fifo
	w.cached = rapid.SampledFrom([]int{0, 30, 95}).Draw(t, "cached")
	if rapid.Bool().Draw(t, "pools") {
		w.pools = map[string]string{"r2": "a", "r3": "a", "r4": reservedPool}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "runners") {
		w.runnerUp(fmt.Sprintf("r%d", i+1), "m1", "m2")
	}
	for range rapid.IntRange(0, 2).Draw(t, "batches") {
		w.drawBatch(t)
	}
	return w
}

func drawFlow(t *rapid.T) flowcontrol.Config {
	flow := flowcontrol.DefaultConfig()
	flow.Policy = rapid.SampledFrom([]string{fixed.Name, aimd.Name, "variable"}).Draw(t, "flow")
	flow = flow.With(fixed.Name, fixed.Config{
		PerRunner: rapid.SampledFrom([]int{1, 3, 8}).Draw(t, "per runner"),
		PerPool:   rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "per pool"),
	})
	own := aimd.DefaultConfig()
	own.Start, own.PerRunner = 2, 6
	flow = flow.With(aimd.Name, own)
	flow.Shadow.Policy = rapid.SampledFrom([]string{"", "", fixed.Name, aimd.Name, "variable"}).
		Draw(t, "shadow")
	flow.Engine.MaxBatchedTokens = rapid.SampledFrom([]int{1, 150, 6000}).Draw(t, "prompt tokens")
	return flow
}

// drawPools returns the pools that a batch may use.
func (w *testDriver) drawPools(t *rapid.T) []string {
	if w.pools == nil {
		return nil
	}
	return slices.Clone(rapid.SampledFrom([][]string{nil, nil, {""}, {"a"}, {"a", ""},
		{reservedPool}, {reservedPool, "a"}, {}}).Draw(t, "batch's pools"))
}

var modelSets = [][]string{{"m1"}, {"m2"}, {"m1", "m2"}, {"m2", "m3"}}

func (w *testDriver) drawRunnerUp(t *rapid.T) {
	id := fmt.Sprintf("r%d", rapid.IntRange(1, 4).Draw(t, "runner"))
	w.runnerChanges(RunnerUp{Runner: id, Unlisted: rapid.Bool().Draw(t, "unlisted"),
		Models: slices.Clone(rapid.SampledFrom(modelSets).Draw(t, "models"))})
}

func (w *testDriver) drawRunnerGone(t *rapid.T) {
	var up []string
	for _, id := range sortedKeys(w.runners) {
		if w.runners[id].models != nil {
			up = append(up, id)
		}
	}
	if len(up) == 0 {
		t.Skip("no runner")
	}
	w.runnerGone(rapid.SampledFrom(up).Draw(t, "runner"))
}

func (w *testDriver) drawBatch(t *rapid.T) {
	if len(w.batches) >= 8 {
		t.Skip("enough batches")
	}
	b := Batch{
		ID: fmt.Sprintf("b%d", len(w.batches)), Tenant: "t",
		Created: w.now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Minute),
		Window:  24 * time.Hour, Deadline: w.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(
			t, "deadline")) * time.Hour),
		MaxConcurrency: rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "max concurrency"),
		RetryAttempts:  rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "attempts"),
		Paused:         rapid.IntRange(0, 5).Draw(t, "paused") == 0,
		Pools:          w.drawPools(t),
	}
	if !w.fifo {
		b.Preemptible = rapid.Bool().Draw(t, "preemptible")
		b.Tenant = rapid.SampledFrom([]string{"t", "u", "v"}).Draw(t, "tenant")
		b.Priority = rapid.IntRange(0, 2).Draw(t, "priority")
		if rapid.Bool().Draw(t, "starts by") {
			b.StartBy = w.now.Add(time.Hour)
		}
	}
	chunks := map[string][]int{}
	for _, model := range rapid.SampledFrom([][]string{{"m1"}, {"m2"}, {"m1", "m2"},
		{"m1", "m2", "m3"}}).Draw(t, "models") {
		chunks[model] = rapid.SliceOfN(rapid.IntRange(1, 5), 1, 5).Draw(t, "chunks")
	}
	w.put(b, chunks)
}

func (w *testDriver) drawLiving(t *rapid.T) string {
	var living []string
	for _, id := range sortedKeys(w.batches) {
		if !w.batches[id].gone {
			living = append(living, id)
		}
	}
	if len(living) == 0 {
		t.Skip("no batch")
	}
	return rapid.SampledFrom(living).Draw(t, "batch")
}

func (w *testDriver) drawChange(t *rapid.T) {
	id := w.drawLiving(t)
	paused, limit := rapid.Bool().Draw(t, "paused"), rapid.IntRange(0, 3).Draw(t, "max concurrency")
	pools := w.batches[id].Pools
	if rapid.Bool().Draw(t, "other pools") {
		pools = w.drawPools(t)
	}
	w.change(id, func(b *Batch) { b.Paused, b.MaxConcurrency, b.Pools = paused, limit, pools })
}

func (w *testDriver) drawBatchGone(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "seldom") > 0 {
		t.Skip("rare")
	}
	id := w.drawLiving(t)
	w.batchGone(id)
	if rapid.Bool().Draw(t, "late change") {
		w.change(id, func(*Batch) {}) // read before, reported after
	}
}

func (w *testDriver) drawLoad(t *rapid.T) {
	if len(w.claims) == 0 {
		t.Skip("no claim")
	}
	i := rapid.IntRange(0, len(w.claims)-1).Draw(t, "claim")
	again := rapid.SampledFrom([]time.Duration{time.Second, 30 * time.Second}).Draw(t, "again")
	if rapid.IntRange(0, 3).Draw(t, "answer") == 0 {
		w.loadNone(i, true, again)
		return
	}
	w.load(i, rapid.SampledFrom([]int{1, 100, 5000}).Draw(t, "prompt"))
}

// drawMoreChunks releases a chunk of another dispatcher.
func (w *testDriver) drawMoreChunks(t *rapid.T) {
	id := w.drawLiving(t)
	b := w.batches[id]
	model := rapid.SampledFrom(sortedKeys(b.unclaimed)).Draw(t, "model")
	if rapid.Bool().Draw(t, "another's") {
		b.unclaimed[model] = append(b.unclaimed[model], 2)
	}
	w.step(MoreChunks{Key: JobKey{id, model}})
}

func (w *testDriver) drawFinish(t *rapid.T) {
	if len(w.requests) == 0 {
		t.Skip("nothing in flight")
	}
	f := rapid.SampledFrom(w.requests).Draw(t, "flight")
	outcome := rapid.SampledFrom([]Outcome{Succeeded, Refused, Shed, Failed, Garbled, TimedOut,
		Unreachable, Unreachable, Died, Died, Evicted, Denied, TooLong}).Draw(t, "outcome")
	status := map[Outcome]int{Succeeded: 200, Refused: 400, Shed: 429, Failed: 500,
		Denied: rapid.SampledFrom([]int{401, 403}).Draw(t, "denied")}[outcome]
	var retryAfter time.Duration
	if outcome == Shed {
		retryAfter = rapid.SampledFrom([]time.Duration{0, 2 * time.Second, 10 * time.Minute}).Draw(
			t, "retry after")
	}
	foreign := outcome == Refused && rapid.IntRange(0, 3).Draw(t, "foreign") == 0
	w.finish(f, outcome, status, retryAfter, foreign)
}

func (w *testDriver) drawFinishWell(t *rapid.T) {
	if len(w.requests) == 0 {
		t.Skip("nothing in flight")
	}
	w.finish(rapid.SampledFrom(w.requests).Draw(t, "flight"), Succeeded, 200, 0)
}

func (w *testDriver) drawFeasibility(t *rapid.T) {
	w.step(Feasibility{Batch: w.drawLiving(t), Infeasible: rapid.Bool().Draw(t, "infeasible")})
}

func (w *testDriver) drawHold(t *rapid.T) {
	w.hold = rapid.SampledFrom([]Reason{Flowing, Flowing, DiskFull}).Draw(t, "hold")
	w.step(Hold{Reason: w.hold})
}

func (w *testDriver) drawFirstToken(t *rapid.T) {
	var streamed []*sentLine
	for _, f := range w.requests {
		if f.Stream {
			streamed = append(streamed, f)
		}
	}
	if len(streamed) == 0 {
		t.Skip("nothing is streamed")
	}
	w.firstToken(rapid.SampledFrom(streamed).Draw(t, "flight"))
}

// drawReading changes the grants of a pool or runner under the policy variable. Other policies
// ignore it.
func (w *testDriver) drawReading(t *rapid.T) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, w.now)
	r.Running = float64(rapid.IntRange(0, 8).Draw(t, "running"))
	ev := Reading{Model: rapid.SampledFrom([]string{"", "m1", "m3"}).Draw(t, "model"), Reading: &r}
	if rapid.Bool().Draw(t, "of a runner") {
		ev = Reading{Runner: fmt.Sprintf("r%d", rapid.IntRange(1, 5).Draw(t, "runner")),
			Reading: &r}
	}
	if ev.Runner != "" && rapid.Bool().Draw(t, "waiting is known") {
		w.metered[ev.Runner] = true
		r.Waiting = float64(rapid.IntRange(0, 3).Draw(t, "waiting"))
		r.OutputTokens = w.now.Sub(noon).Seconds()
	}
	if rapid.Bool().Draw(t, "gaps instead") {
		w.step(TokenGaps{Runner: ev.Runner, Gaps: int(r.Running), Time: time.Second})
		return
	}
	w.step(ev)
}

// drawReconfigure replaces the configuration of the planner.
func (w *testDriver) drawReconfigure(t *rapid.T) {
	w.cfg.LookAhead = rapid.SampledFrom([]int{1, 16}).Draw(t, "look ahead")
	if !w.fifo {
		w.deps.Scheduler.Policy = rapid.SampledFrom([]string{"slack", "sjf", "priority"}).Draw(t,
			"order")
	}
	if rapid.Bool().Draw(t, "other flow control") {
		w.deps.Flow = drawFlow(t)
	}
	w.reconfigure()
}

func (w *testDriver) drawPass(t *rapid.T) {
	w.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, 600 * time.Millisecond,
		10 * time.Second, 10 * time.Minute}).Draw(t, "time"))
}
