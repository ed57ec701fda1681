package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/scheduler"
)

// manyJobs is a planner with many jobs of 1,000 tenants in one pool of 20 runners, and a driver
// that answers at once.
type manyJobs struct {
	planner *Planner
	now     time.Time
	random  *rand.Rand
	jobs    int
	claims  []JobKey
	head    int // of claims
	flights []Start
	chunk   int
	lines   []Line
}

func newManyJobs(tb testing.TB, jobs int) *manyJobs {
	return newManyJobsUnder(tb, jobs, flowcontrol.DefaultConfig().Select(fixed.Name,
		fixed.Config{PerRunner: 64}))
}

func newManyJobsUnder(tb testing.TB, jobs int, flow flowcontrol.Config) *manyJobs {
	deps := Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow,
		Random: rand.New(rand.NewPCG(1, 2))}
	c := &manyJobs{planner: newPlanner(tb, DefaultConfig(), deps), now: noon,
		random: rand.New(rand.NewPCG(3, 4))}
	for slot := range 256 {
		c.lines = append(c.lines, Line{Slot: slot, PromptTokens: 100 + slot, MaxTokens: 500})
	}
	for range jobs {
		c.step(BatchPut{Batch: c.batch()})
	}
	for i := range 20 {
		c.step(RunnerUp{Runner: fmt.Sprintf("r%02d", i), Models: []string{"m"}})
	}
	c.load()
	return c
}

// batch returns a random batch of 500 to 500,000 lines, due in an hour to a week, or without a
// deadline.
func (c *manyJobs) batch() Batch {
	c.jobs++
	b := Batch{ID: fmt.Sprintf("batch-%06d", c.jobs), Tenant: fmt.Sprintf("tenant-%d",
		c.random.IntN(1000)), Created: c.now, Priority: c.random.IntN(3)}
	if c.random.IntN(10) > 0 {
		b.Window = time.Duration(1+c.random.IntN(7*24)) * time.Hour
		b.Deadline = c.now.Add(b.Window)
	}
	n := 500 << c.random.IntN(11)
	b.Models = []ModelLines{{Model: "m", Lines: n, PromptTokens: int64(n) * 200,
		MaxTokens: int64(n) * 500}}
	return b
}

func (c *manyJobs) step(ev Event) time.Duration {
	began := time.Now()
	actions := c.planner.Step(c.now, ev)
	took := time.Since(began)
	c.flights = append(c.flights, actions.Start...)
	for _, claim := range actions.Claim {
		c.claims = append(c.claims, claim.Key)
	}
	return took
}

// load answers all claims.
func (c *manyJobs) load() (took []time.Duration) {
	for ; c.head < len(c.claims); c.head++ {
		took = append(took, c.step(Loaded{Key: c.claims[c.head], Chunk: c.chunk, Lines: c.lines,
			More: true}))
		c.chunk++
	}
	c.claims, c.head = c.claims[:0], 0
	return took
}

func (c *manyJobs) finish(f *Finished) time.Duration {
	c.now = c.now.Add(time.Millisecond)
	i := c.random.IntN(len(c.flights))
	*f = Finished{Start: c.flights[i], Outcome: Succeeded, Status: 200, Latency: time.Second,
		InputTokens: 200, OutputTokens: 100 + c.random.IntN(200)}
	last := len(c.flights) - 1
	c.flights[i] = c.flights[last]
	c.flights = c.flights[:last]
	return c.step(f)
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// BenchmarkStep measures single steps with 100,000 jobs in one pool. The aim is 50 µs at the 99th
// percentile.
func BenchmarkStep(b *testing.B) {
	b.Run("Finished", func(b *testing.B) {
		c := newManyJobs(b, 100_000)
		var took []time.Duration
		var f Finished
		b.ReportAllocs()
		for b.Loop() {
			took = append(took, c.finish(&f))
			c.load()
		}
		report(b, took)
	})
	b.Run("BatchPut", func(b *testing.B) {
		c := newManyJobs(b, 100_000)
		var took, gone []time.Duration
		b.ReportAllocs()
		for b.Loop() {
			took = append(took, c.step(BatchPut{Batch: c.batch()}))
			c.load()
			gone = append(gone, c.step(BatchGone{Batch: fmt.Sprintf("batch-%06d", c.jobs-100_000)}))
			c.load()
		}
		report(b, took)
		slices.Sort(gone)
		b.ReportMetric(float64(gone[len(gone)*99/100].Nanoseconds()), "gone-p99-ns")
	})
	b.Run("Loaded", func(b *testing.B) { // a chunk of 256 lines
		c := newManyJobs(b, 100_000)
		var took []time.Duration
		var f Finished
		b.ReportAllocs()
		for b.Loop() {
			for len(c.claims) == 0 {
				c.finish(&f)
			}
			took = append(took, c.load()...)
		}
		report(b, took)
	})
}

// BenchmarkShadow measures the end of a line and the start of the next one with a shadow beside the
// policy fixed, which costs next to nothing itself.
func BenchmarkShadow(b *testing.B) {
	for _, policy := range []string{"", aimd.Name, headroom.Name} {
		b.Run(cmp.Or(policy, "none"), func(b *testing.B) {
			flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 64})
			flow.Shadow.Policy = policy
			c := newManyJobsUnder(b, 1000, flow)
			var f Finished
			b.ReportAllocs()
			for b.Loop() {
				c.finish(&f)
				c.load()
			}
		})
	}
}

// TestStepCostDoesNotDependOnTheNumberOfJobs compares a planner with one of a hundred times as many
// jobs. The limit is generous, because the machine may be busy. Work proportional to the number of
// jobs would exceed it by far.
func TestStepCostDoesNotDependOnTheNumberOfJobs(t *testing.T) {
	median := func(jobs int) time.Duration {
		c := newManyJobs(t, jobs)
		var took []time.Duration
		var f Finished
		for range 2000 {
			took = append(took, c.finish(&f))
			c.load()
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	small, large := median(200), median(20_000)
	if large > 10*small {
		t.Errorf("a step takes %v with 20,000 jobs, %v with 200", large, small)
	}
}

// The end of a line and the start of the next one allocate no memory.
func TestStepsDoNotAllocate(t *testing.T) {
	c := newManyJobs(t, 1000)
	var f Finished
	allocations := testing.AllocsPerRun(5000, func() {
		c.finish(&f)
		c.load()
	})
	if len(c.flights) != 20*64 {
		t.Errorf("%d lines in flight, want 64 on each of 20 runners", len(c.flights))
	}
	if allocations > 0.5 {
		t.Errorf("%v allocations per line, want next to none", allocations)
	}
}

// BenchmarkSurvey is what the loop does for one survey.
func BenchmarkSurvey(b *testing.B) {
	for _, jobs := range []int{100, 10_000} {
		b.Run(fmt.Sprint(jobs), func(b *testing.B) {
			c := newManyJobs(b, jobs)
			b.ReportAllocs()
			for b.Loop() {
				c.planner.Survey(c.now)
			}
		})
	}
}
