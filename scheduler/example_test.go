package scheduler_test

import (
	"fmt"
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// maxLines ranks by the lines left, the most first.
type maxLines struct{}

func (maxLines) Name() string                 { return "most_lines" }
func (maxLines) Rank(j scheduler.Job) float64 { return -float64(j.Lines) }

func init() {
	scheduler.Register("most_lines", func(scheduler.Config) (scheduler.Policy, error) {
		return maxLines{}, nil
	})
}

// A policy has two methods and a name. Test it with schedulertest.TestPolicy.
func ExampleRegister() {
	cfg := scheduler.DefaultConfig()
	cfg.Policy = "most_lines"
	queue, err := scheduler.NewQueue(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	queue.Put(scheduler.Job{ID: "few", Lines: 10})
	queue.Put(scheduler.Job{ID: "many", Lines: 50_000})
	fmt.Println(queue.Next(time.Now()))
	// Output: many true
}

// The policy expression orders by an expression of the configuration: here a priority of 1 counts
// as an hour of deadline.
func ExampleNewPolicy_expression() {
	cfg := scheduler.DefaultConfig()
	cfg.Expression = "deadline_s - 3600 * priority"
	policy, err := scheduler.NewPolicy("expression", cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	evening := time.Date(2026, 3, 14, 18, 0, 0, 0, time.UTC)
	soon := scheduler.Job{Deadline: evening}
	important := scheduler.Job{Deadline: evening.Add(2 * time.Hour), Priority: 3}
	fmt.Println(policy.Rank(important) < policy.Rank(soon))
	// Output: true
}

// To start a line, ask whose line goes next, start it, and charge its work.
func ExampleQueue() {
	cfg := scheduler.DefaultConfig()
	cfg.Quantum = 1000 // small, to see tenants take turns; the first line of each starts at once
	queue, err := scheduler.NewQueue(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	queue.Put(scheduler.Job{ID: "reviews", Tenant: "acme", Lines: 50_000})
	queue.Put(scheduler.Job{ID: "titles", Tenant: "globex", Lines: 100})
	for range 8 {
		id, ok := queue.Next(now)
		if !ok {
			break
		}
		fmt.Println(id)
		queue.Charge(id, 500)
	}
	// Output:
	// reviews
	// titles
	// reviews
	// titles
	// reviews
	// reviews
	// titles
	// titles
}
