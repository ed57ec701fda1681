package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// benchPlanner measures the duration of Planner.Step with many jobs. The events are those of a busy
// dispatcher: lines end, a few of them shed or with a runner that died, claims are answered, and
// batches are added and removed.
func benchPlanner(ctx context.Context, l *environment) ([]figure, error) {
	name := fmt.Sprintf("Planner step with %s jobs", grouped(l.sizes.plannerJobs))
	median := figure{What: name + ", median", Unit: "µs"}
	p99 := figure{What: name + ", p99", Unit: "µs", Goal: atMost(50)}
	for run := range l.runs {
		l.logf("planner: run %d of %d", run+1, l.runs)
		steps, err := measureSteps(ctx, l.sizes.plannerJobs, l.sizes.plannerSteps)
		if err != nil {
			return nil, err
		}
		median.Values = append(median.Values, percentile(steps, 0.5))
		p99.Values = append(p99.Values, percentile(steps, 0.99))
		p99.Detail = fmt.Sprintf("p99.9 %s µs", number(percentile(steps, 0.999)))
	}
	return []figure{median, p99}, nil
}

const (
	plannerRunners = 8
	plannerTenants = 50
	chunkLines     = 64 // number of lines of a chunk
)

// plannerDriver sends events to a planner and executes its actions as a dispatcher does, but in
// virtual time and without requests.
type plannerDriver struct {
	planner  *plan.Planner
	random   *rand.Rand
	now      time.Time
	inFlight []plan.Start
	claims   []plan.JobKey // not yet answered
	chunks   int           // number of chunks loaded so far
	starts   int           // number of lines started so far
	batches  int           // number of batches added so far
}

// measureSteps builds a planner with the given number of jobs, and returns the durations of the
// given number of steps, in microseconds.
func measureSteps(ctx context.Context, jobs, steps int) ([]float64, error) {
	flow := flowcontrol.DefaultConfig()
	flow.Policy = fixed.Name
	random := rand.New(rand.NewPCG(1, 2))
	planner, err := plan.New(plan.DefaultConfig(), plan.Deps{Scheduler: scheduler.DefaultConfig(),
		Flow: flow, Random: random})
	if err != nil {
		return nil, err
	}
	d := &plannerDriver{planner: planner, random: random, now: time.Unix(1_767_225_600, 0)}
	for i := range plannerRunners {
		d.step(plan.RunnerUp{Runner: fmt.Sprintf("runner-%d", i), Models: []string{model}})
	}
	for range jobs {
		d.step(plan.BatchPut{Batch: d.newBatch()})
	}
	durations := make([]float64, 0, steps)
	for len(durations) < steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d.now = d.now.Add(time.Millisecond)
		event := d.nextEvent()
		begin := time.Now()
		actions := d.planner.Step(d.now, event)
		durations = append(durations, microseconds(time.Since(begin)))
		d.apply(actions)
	}
	if d.starts < steps/2 {
		return nil, fmt.Errorf("the planner started only %d lines in %d steps",
			d.starts, steps)
	}
	return durations, nil
}

func (d *plannerDriver) step(event plan.Event) { d.apply(d.planner.Step(d.now, event)) }

// apply records the lines that were started and the chunks that were claimed.
func (d *plannerDriver) apply(a plan.Actions) {
	d.inFlight = append(d.inFlight, a.Start...)
	d.starts += len(a.Start)
	for _, claim := range a.Claim {
		d.claims = append(d.claims, claim.Key)
	}
}

// newBatch returns a random batch with one job.
func (d *plannerDriver) newBatch() plan.Batch {
	d.batches++
	lines := 1 + d.random.IntN(2000)
	window := time.Hour + time.Duration(d.random.Int64N(int64(48*time.Hour)))
	return plan.Batch{
		ID: batchID(d.batches), Tenant: fmt.Sprintf("tenant-%d", d.random.IntN(plannerTenants)),
		Window: window, Created: d.now, Deadline: d.now.Add(window),
		Models: []plan.ModelLines{{Model: model, Lines: lines, PromptTokens: int64(lines) * 500}},
	}
}

func batchID(n int) string { return fmt.Sprintf("batch-%07d", n) }

// nextEvent returns the answer to a claim, if one is open, or else a random event, in most cases
// the end of a line.
func (d *plannerDriver) nextEvent() plan.Event {
	chance := d.random.IntN(1000)
	switch {
	case len(d.claims) > 0:
		key := d.claims[0]
		d.claims = d.claims[1:]
		return d.loadChunk(key)
	case chance < 5:
		return plan.BatchPut{Batch: d.newBatch()}
	case chance < 10:
		return plan.BatchGone{Batch: batchID(1 + d.random.IntN(d.batches))}
	case len(d.inFlight) == 0:
		return plan.Tick{}
	}
	i := d.random.IntN(len(d.inFlight))
	start := d.inFlight[i]
	last := len(d.inFlight) - 1
	d.inFlight[i] = d.inFlight[last]
	d.inFlight = d.inFlight[:last]
	finished := plan.Finished{Start: start, Outcome: plan.Succeeded, Status: 200,
		Latency: time.Second, InputTokens: 500, OutputTokens: 1 + d.random.IntN(500)}
	switch {
	case chance < 15:
		finished = plan.Finished{Start: start, Outcome: plan.Shed, Status: 429,
			RetryAfter: 20 * time.Millisecond}
	case chance < 20:
		finished = plan.Finished{Start: start, Outcome: plan.Died}
	}
	return &finished
}

// loadChunk returns the answer to a claim: a full chunk.
func (d *plannerDriver) loadChunk(key plan.JobKey) plan.Event {
	d.chunks++
	loaded := plan.Loaded{Key: key, Chunk: d.chunks, More: true}
	for slot := range chunkLines {
		loaded.Lines = append(loaded.Lines, plan.Line{Slot: slot, PromptTokens: 500})
	}
	return loaded
}
