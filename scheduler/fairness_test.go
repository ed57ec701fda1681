package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/scheduler"
)

// sharing is a number of flows, each with an endless job: tenants, or jobs of one tenant.
type sharing struct {
	queue   *scheduler.Queue
	weights []float64
	served  []float64
	quantum float64
	largest float64 // line so far
}

// newSharing returns n tenants of one of the weights each.
func newSharing(t *rapid.T, n int, weights ...float64) *sharing {
	c := &sharing{quantum: 1000, served: make([]float64, n)}
	cfg := scheduler.DefaultConfig()
	cfg.Quantum, cfg.TenantWeights = c.quantum, map[string]float64{}
	for i := range n {
		weight := rapid.SampledFrom(weights).Draw(t, "weight")
		c.weights = append(c.weights, weight)
		cfg.TenantWeights[fmt.Sprintf("t%d", i)] = weight
	}
	c.begin(t, cfg, func(flow int) string { return fmt.Sprintf("t%d", flow) })
	return c
}

// newJobSharing returns n jobs of one tenant.
func newJobSharing(t *rapid.T, n int) *sharing {
	c := &sharing{quantum: 1000, served: make([]float64, n),
		weights: slices.Repeat([]float64{1}, n)}
	cfg := scheduler.DefaultConfig()
	cfg.Quantum = c.quantum
	c.begin(t, cfg, func(int) string { return "t" })
	return c
}

// anySharing returns n flows of one of the two kinds.
func anySharing(t *rapid.T, n int, weights ...float64) *sharing {
	if rapid.Bool().Draw(t, "jobs of one tenant") {
		return newJobSharing(t, n)
	}
	return newSharing(t, n, weights...)
}

func (c *sharing) begin(t *rapid.T, cfg scheduler.Config, tenant func(flow int) string) {
	queue, err := scheduler.NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.queue = queue
	for i := range c.served {
		c.queue.Put(scheduler.Job{ID: jobOf(i), Tenant: tenant(i)})
	}
}

func jobOf(flow int) string { return fmt.Sprintf("job%d", flow) }

// start starts one line of the job that is next.
func (c *sharing) start(t *rapid.T, work float64) (flow int) {
	id, ok := c.queue.Next(noon)
	if !ok {
		t.Fatal("nothing is offered")
	}
	if _, err := fmt.Sscanf(id, "job%d", &flow); err != nil {
		t.Fatal(err)
	}
	c.queue.Charge(id, work)
	c.served[flow] += work
	c.largest = max(c.largest, work)
	return flow
}

// lead returns by how much more work per weight a was served than b.
func (c *sharing) lead(a, b int) float64 {
	return c.served[a]/c.weights[a] - c.served[b]/c.weights[b]
}

// bound returns the largest lead over a flow that always has a line to start: the turn that has
// begun, a quantum of a young flow, and one line.
func (c *sharing) bound(a, b int) float64 {
	return 2*c.quantum + c.largest/min(c.weights[a], c.weights[b])
}

func TestFlowsShareByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anySharing(t, rapid.IntRange(2, 5).Draw(t, "flows"), 0.25, 1, 3)
		lines := rapid.SliceOfN(rapid.Float64Range(1, 5000), 300, 300).Draw(t, "lines")
		for _, work := range lines {
			c.start(t, work)
			for a := range c.served {
				for b := range c.served {
					if c.lead(a, b) > c.bound(a, b) {
						t.Fatalf("flow %d leads %d by %v, more than %v", a, b, c.lead(
							a, b), c.bound(a, b))
					}
				}
			}
		}
	})
}

// Flow 0 is parked and unparked at random. It gets no more than one that is never parked.
func TestParkingGainsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anySharing(t, 3, 0.25, 1, 3)
		for range 400 {
			if rapid.Bool().Draw(t, "parks") {
				c.queue.Park(jobOf(0))
			}
			if rapid.Bool().Draw(t, "returns") {
				c.queue.Unpark(jobOf(0))
			}
			c.start(t, rapid.Float64Range(1, 3000).Draw(t, "work"))
			for b := 1; b < 3; b++ {
				if c.lead(0, b) > c.bound(0, b) {
					t.Fatalf("the parking flow leads %d by %v, more than %v", b, c.lead(
						0, b), c.bound(0, b))
				}
			}
		}
	})
}

// Flow 0 is parked after each of its lines, like a job whose next chunk is being claimed, and is
// offered again one line later. It could use half of the pool and is due a third, so it loses
// nothing.
func TestAPauseBetweenChunksCostsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anySharing(t, 3, 1)
		work := rapid.Float64Range(1, 1500).Draw(t, "work")
		for range 1000 {
			served := c.start(t, work)
			c.queue.Unpark(jobOf(0))
			if served == 0 {
				c.queue.Park(jobOf(0))
			}
			for b := 1; b < 3; b++ {
				if c.lead(b, 0) > c.bound(b, 0) {
					t.Fatalf("flow %d leads the pausing one by %v, more than %v", b, c.lead(
						b, 0), c.bound(b, 0))
				}
			}
		}
	})
}

// A job, tenant or named queue that had nothing to offer is not owed what others got meanwhile.
func TestCreditIsNotSavedUp(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.Quantum, cfg.BetweenQueues = 1000, "weighted"
	cfg.Queues = []scheduler.QueueConfig{{Name: "night", Match: []scheduler.Match{
		{Models: []string{"owl"}}}}}
	for name, away := range map[string]scheduler.Job{
		"job":         {ID: "away", Tenant: "a"},
		"tenant":      {ID: "away", Tenant: "b"},
		"named queue": {ID: "away", Tenant: "a", Model: "owl"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t, cfg)
			q.Put(scheduler.Job{ID: "here", Tenant: "a"})
			q.Put(away)
			q.Park("away")
			for range 10_000 {
				q.Charge("here", 100)
			}
			q.Unpark("away")
			served := map[string]int{}
			for range 1000 {
				id, _ := q.Next(noon)
				q.Charge(id, 100)
				served[id]++
			}
			if served["here"] < 480 || served["away"] < 480 {
				t.Errorf("served %v of 1000 lines, want about half each", served)
			}
		})
	}
}

// starts charges n lines of the given work, and returns the job of each.
func starts(q *scheduler.Queue, n int, work float64) (ids []string) {
	for range n {
		id, _ := q.Next(noon)
		q.Charge(id, work)
		ids = append(ids, id)
	}
	return ids
}

// A batch of a few lines starts at once, beside large ones of its tenant or of others, and wherever
// in a turn it comes.
func TestAFewLinesStartAtOnce(t *testing.T) {
	const line = 30
	rapid.Check(t, func(t *rapid.T) {
		q, err := scheduler.NewQueue(scheduler.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "large batches") {
			tenant := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant")
			q.Put(scheduler.Job{ID: fmt.Sprintf("large%d", i), Tenant: tenant})
		}
		starts(q, rapid.IntRange(0, 50_000).Draw(t, "lines before"), line)
		tenant := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "tenant of the small batch")
		q.Put(scheduler.Job{ID: "small", Tenant: tenant})
		ids := starts(q, 100, line) // at first, large batches are young too
		if n := count(ids, "small"); n < 10 {
			t.Fatalf("%d of %d lines are of the small batch, want 10 or more: %v", n, len(ids),
				ids)
		}
	})
}

func count(ids []string, id string) (n int) {
	for _, x := range ids {
		if x == id {
			n++
		}
	}
	return n
}

// One small batch after the other of a tenant gets no more than the tenant's share.
func TestManySmallBatchesGainNothing(t *testing.T) {
	q := newQueue(t, scheduler.DefaultConfig())
	q.Put(scheduler.Job{ID: "large", Tenant: "a"})
	served := map[string]int{}
	for i := range 10_000 {
		q.Put(scheduler.Job{ID: fmt.Sprint("small", i), Tenant: "b"})
		for range 10 {
			id, _ := q.Next(noon)
			q.Charge(id, 100)
			served[id]++
		}
		q.Remove(fmt.Sprint("small", i))
	}
	if large := served["large"]; large < 45_000 {
		t.Errorf("%d of 100,000 lines were those of the other tenant, want about half", large)
	}
}

// The jobs of a tenant share its part alone, however many they are.
func TestManyJobsOfATenantGainNothing(t *testing.T) {
	q := newQueue(t, scheduler.DefaultConfig())
	q.Put(scheduler.Job{ID: "one", Tenant: "a"})
	for i := range 9 {
		q.Put(scheduler.Job{ID: fmt.Sprint("job", i), Tenant: "b"})
	}
	ids := starts(q, 200_000, 100)
	if n := count(ids, "one"); n < 95_000 || n > 105_000 {
		t.Errorf("%d of 200,000 lines are of the tenant with one job, want half", n)
	}
	if n := count(ids, "job4"); n < 9_000 || n > 13_000 {
		t.Errorf("%d of 200,000 lines are of one of nine jobs, want a ninth of half", n)
	}
}

// Without urgency a tenant's jobs do not share: they go by rank, then by priority.
func TestOnlyDeadlineAwarePoliciesShareBetweenJobs(t *testing.T) {
	for _, policy := range scheduler.Policies() {
		for _, urgency := range []scheduler.Urgency{"auto", "always", "never"} {
			cfg := configOf(policy)
			cfg.Urgency, cfg.Quantum = urgency, 100
			q := newQueue(t, cfg)
			q.Put(scheduler.Job{ID: "old", Priority: 1, Created: noon.Add(-1), Lines: 1})
			q.Put(scheduler.Job{ID: "new", Created: noon})
			shares := count(starts(q, 100, 10), "new") > 0
			want := (policy == "slack" || policy == "edf") && urgency != "never"
			if shares != want {
				t.Errorf("%s, urgency %s: jobs share: %v, want %v", policy, urgency, shares, want)
			}
		}
	}
}

// Of jobs that share and have got the same work, the one with the highest priority is first.
func TestPriorityBreaksTiesOfSharing(t *testing.T) {
	q := newQueue(t, scheduler.DefaultConfig())
	q.Put(scheduler.Job{ID: "a", Deadline: noon.Add(5 * time.Hour)})
	q.Put(scheduler.Job{ID: "b", Priority: 1, Deadline: noon.Add(9 * time.Hour)})
	if id, _ := q.Next(noon); id != "b" {
		t.Errorf("first is %s, want b, which has priority 1", id)
	}
}

// Jobs that fit into a round are done one after the other, by rank, once each has begun.
func TestRankOrdersARound(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	q := newQueue(t, cfg)
	work := cfg.Quantum / 10
	jobs := map[string]float64{"day": work, "hour": work, "week": work}
	for id, deadline := range map[string]time.Duration{
		"day": 24 * time.Hour, "hour": 12 * time.Hour, "week": 7 * 24 * time.Hour,
	} {
		q.Put(scheduler.Job{ID: id, Work: work, Deadline: noon.Add(deadline)})
	}
	var ended []string
	for len(ended) < 3 {
		id, ok := q.Next(noon)
		if !ok {
			t.Fatal("the queue is empty")
		}
		line := work / 100
		if id == "hour" {
			line *= 1.1 // so it is a little ahead when all have begun
		}
		q.Charge(id, line)
		if jobs[id] -= line; jobs[id] <= work/1000 {
			q.Remove(id)
			ended = append(ended, id)
		}
	}
	if want := []string{"hour", "day", "week"}; !slices.Equal(ended, want) {
		t.Errorf("the jobs ended in the order %v, want %v", ended, want)
	}
}
