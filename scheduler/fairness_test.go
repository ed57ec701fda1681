package scheduler_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/scheduler"
)

// sharing is a number of tenants with an endless job each.
type sharing struct {
	queue   *scheduler.Queue
	weights []float64
	served  []float64
	quantum float64
	largest float64 // line so far
}

func newSharing(t *rapid.T, tenants int, weights ...float64) *sharing {
	c := &sharing{quantum: 1000, served: make([]float64, tenants)}
	cfg := scheduler.DefaultConfig()
	cfg.Quantum, cfg.TenantWeights = c.quantum, map[string]float64{}
	for i := range tenants {
		weight := rapid.SampledFrom(weights).Draw(t, "weight")
		c.weights = append(c.weights, weight)
		cfg.TenantWeights[fmt.Sprintf("t%d", i)] = weight
	}
	queue, err := scheduler.NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.queue = queue
	for i := range tenants {
		c.queue.Put(scheduler.Job{ID: jobOf(i), Tenant: fmt.Sprintf("t%d", i)})
	}
	return c
}

func jobOf(tenant int) string { return fmt.Sprintf("job%d", tenant) }

// start starts one line of the job that is next.
func (c *sharing) start(t *rapid.T, work float64) (tenant int) {
	id, ok := c.queue.Next(noon)
	if !ok {
		t.Fatal("nothing is offered")
	}
	if _, err := fmt.Sscanf(id, "job%d", &tenant); err != nil {
		t.Fatal(err)
	}
	c.queue.Charge(id, work)
	c.served[tenant] += work
	c.largest = max(c.largest, work)
	return tenant
}

// lead returns by how much more work per weight a was served than b.
func (c *sharing) lead(a, b int) float64 {
	return c.served[a]/c.weights[a] - c.served[b]/c.weights[b]
}

// bound returns the largest lead of two tenants that always have a line to start: one turn that has
// begun, one quantum, and one line overdrawn.
func (c *sharing) bound(a, b int) float64 {
	return 2*c.quantum + c.largest/min(c.weights[a], c.weights[b])
}

func TestTenantsShareByWeight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSharing(t, rapid.IntRange(2, 5).Draw(t, "tenants"), 0.25, 1, 3)
		lines := rapid.SliceOfN(rapid.Float64Range(1, 5000), 300, 300).Draw(t, "lines")
		for _, work := range lines {
			c.start(t, work)
			for a := range c.served {
				for b := range c.served {
					if c.lead(a, b) > c.bound(a, b) {
						t.Fatalf("tenant %d leads %d by %v, more than %v", a, b, c.lead(
							a, b), c.bound(a, b))
					}
				}
			}
		}
	})
}

// Tenant 0 is parked and unparked at random. It gets no more than a tenant that is never parked.
func TestParkingGainsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSharing(t, 3, 0.25, 1, 3)
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
					t.Fatalf("the parking tenant leads %d by %v, more than %v", b, c.lead(
						0, b), c.bound(0, b))
				}
			}
		}
	})
}

// Tenant 0 is parked after each of its lines, like a job whose next chunk is being claimed, and is
// offered again one line later. It could use half of the pool and is due a third, so it loses
// nothing.
func TestAPauseBetweenChunksCostsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newSharing(t, 3, 1)
		work := rapid.Float64Range(1, 1500).Draw(t, "work")
		for range 1000 {
			served := c.start(t, work)
			c.queue.Unpark(jobOf(0))
			if served == 0 {
				c.queue.Park(jobOf(0))
			}
			for b := 1; b < 3; b++ {
				if c.lead(b, 0) > c.bound(b, 0) {
					t.Fatalf("tenant %d leads the pausing one by %v, more than %v", b, c.lead(
						b, 0), c.bound(b, 0))
				}
			}
		}
	})
}

// A tenant or named queue that had nothing to offer is not owed what others got meanwhile.
func TestCreditIsNotSavedUp(t *testing.T) {
	cfg := scheduler.DefaultConfig()
	cfg.Quantum, cfg.BetweenQueues = 1000, "weighted"
	cfg.Queues = []scheduler.QueueConfig{{Name: "night", Match: []scheduler.Match{
		{Models: []string{"owl"}}}}}
	for name, away := range map[string]scheduler.Job{
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
