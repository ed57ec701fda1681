// Package schedulertest tests implementations of scheduler.Policy, with jobs of every kind.
package schedulertest

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidefill/tidefill/scheduler"
)

// Noon is the reference time of Jobs and the present time of the tests.
var Noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// Jobs returns n random jobs. Some have no deadline, no start time, no measured rate or no work.
// Many have the same creation time and priority. Jobs are created at most 20 minutes before Noon;
// deadlines are after it. The same seed gives the same jobs.
func Jobs(seed uint64, n int) []scheduler.Job {
	random := rand.New(rand.NewPCG(seed, 0))
	jobs := make([]scheduler.Job, n)
	for i := range jobs {
		j := scheduler.Job{
			ID:       fmt.Sprintf("job-%05d", i),
			Tenant:   fmt.Sprintf("tenant-%d", random.IntN(5)),
			Model:    fmt.Sprintf("model-%d", random.IntN(3)),
			Priority: random.IntN(5) - 2,
			Created:  Noon.Add(-time.Duration(random.IntN(20)) * time.Minute),
			Lines:    1 + random.IntN(50_000),
		}
		j.Work = float64(j.Lines * random.IntN(1000))
		if random.IntN(2) == 0 {
			j.Rate = float64(1 + random.IntN(4000))
		}
		if random.IntN(4) > 0 {
			j.Window = time.Duration(1+random.IntN(48)) * time.Hour
			j.Deadline = Noon.Add(j.Window)
			j.Infeasible = random.IntN(8) == 0
		}
		if random.IntN(4) == 0 {
			j.StartBy = Noon.Add(time.Duration(random.IntN(600)) * time.Minute)
		}
		jobs[i] = j
	}
	random.Shuffle(n, func(a, b int) { jobs[a], jobs[b] = jobs[b], jobs[a] })
	return jobs
}

// TestPolicy tests the policy cfg.Policy, alone and in a queue.
func TestPolicy(t *testing.T, cfg scheduler.Config) {
	t.Helper()
	cfg.Urgency = scheduler.UrgencyNever // only the policy determines the order
	cfg.Queues = nil
	jobs := Jobs(1, 500)
	for i := range jobs {
		jobs[i].Tenant = "one"
	}

	t.Run("its name is that of its registration", func(t *testing.T) {
		if got := newPolicy(t, cfg).Name(); got != cfg.Policy {
			t.Errorf("Name() = %q, want %q", got, cfg.Policy)
		}
	})

	t.Run("a rank depends on the job alone", func(t *testing.T) {
		policy, ranks := newPolicy(t, cfg), map[string]float64{}
		for _, j := range jobs {
			ranks[j.ID] = policy.Rank(j)
		}
		for _, j := range slices.Backward(jobs) {
			if got := policy.Rank(j); !same(got, ranks[j.ID]) {
				t.Errorf("rank of %s: first %v, then %v", j.ID, ranks[j.ID], got)
			}
			if got := newPolicy(t, cfg).Rank(j); !same(got, ranks[j.ID]) {
				t.Errorf("rank of %s: %v, by a new policy %v", j.ID, ranks[j.ID], got)
			}
		}
	})

	t.Run("a rank does not depend on the clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // time is virtual, so Sleep returns at once
			policy, ranks := newPolicy(t, cfg), map[string]float64{}
			for _, j := range jobs {
				ranks[j.ID] = policy.Rank(j)
			}
			time.Sleep(36*time.Hour + 61*time.Second)
			for _, j := range jobs {
				if got := policy.Rank(j); !same(got, ranks[j.ID]) {
					t.Fatalf("rank of %s: %v, a day and a half later %v", j.ID, ranks[j.ID], got)
				}
			}
		})
	})

	t.Run("a rank is a number for every job", func(t *testing.T) {
		policy := newPolicy(t, cfg)
		for _, j := range append(slices.Clone(jobs), scheduler.Job{},
			scheduler.Job{ID: "only-created", Created: Noon}) {
			if rank := policy.Rank(j); math.IsNaN(rank) {
				t.Errorf("rank of %+v is not a number", j)
			}
		}
	})

	t.Run("the order is total and by rank, priority, age and ID", func(t *testing.T) {
		policy := newPolicy(t, cfg)
		want := slices.Clone(jobs)
		slices.SortFunc(want, func(a, b scheduler.Job) int {
			return cmp.Or(cmp.Compare(policy.Rank(a), policy.Rank(b)), cmp.Compare(b.Priority,
				a.Priority), a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
		})
		for seed := range uint64(3) {
			got := drain(t, newQueue(t, cfg, shuffled(seed, jobs)))
			for i := range want {
				if got[i] != want[i].ID {
					t.Fatalf("insertion order %d, place %d: got %s, want %s", seed, i, got[i],
						want[i].ID)
				}
			}
		}
	})

	t.Run("a job is ranked again by Put", func(t *testing.T) {
		q := newQueue(t, cfg, jobs)
		changed := shuffled(7, jobs)
		for i := range changed { // each job gets the properties of another
			id := changed[i].ID
			changed[i] = jobs[i]
			changed[i].ID = id
			q.Put(changed[i])
		}
		wantOrder(t, drain(t, q), drain(t, newQueue(t, cfg, changed)))
	})

	t.Run("parked jobs are not offered and return to their place", func(t *testing.T) {
		q := newQueue(t, cfg, jobs)
		for _, j := range jobs[:300] {
			q.Park(j.ID)
		}
		for _, j := range jobs[:100] {
			q.Put(j) // does not unpark
		}
		if got := q.Offered(); got != 200 || q.Len() != 500 {
			t.Fatalf("offered %d of %d, want 200 of 500", got, q.Len())
		}
		for _, j := range jobs[:200] {
			q.Unpark(j.ID)
		}
		wantOrder(t, drain(t, q), drain(
			t, newQueue(t, cfg, append(slices.Clone(jobs[:200]), jobs[300:]...))))
	})

	t.Run("removed jobs are gone", func(t *testing.T) {
		q := newQueue(t, cfg, jobs)
		for _, j := range jobs[:250] {
			q.Remove(j.ID)
			q.Remove(j.ID)
			q.Unpark(j.ID)
		}
		wantOrder(t, drain(t, q), drain(t, newQueue(t, cfg, jobs[250:])))
	})
}

func same(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func newPolicy(t *testing.T, cfg scheduler.Config) scheduler.Policy {
	t.Helper()
	policy, err := scheduler.NewPolicy(cfg.Policy, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// newQueue returns a queue with the jobs.
func newQueue(t *testing.T, cfg scheduler.Config, jobs []scheduler.Job) *scheduler.Queue {
	t.Helper()
	q, err := scheduler.NewQueue(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs {
		q.Put(j)
	}
	return q
}

// drain removes all jobs in the order in which Next returns them, and returns their IDs. It fails
// if a second call of Next returns another job than the first.
func drain(t *testing.T, q *scheduler.Queue) []string {
	t.Helper()
	var ids []string
	for {
		id, ok := q.Next(Noon)
		if again, _ := q.Next(Noon); again != id {
			t.Fatalf("Next returns %s, and %s in a second call", id, again)
		}
		if !ok {
			return ids
		}
		ids = append(ids, id)
		q.Remove(id)
	}
}

func shuffled(seed uint64, jobs []scheduler.Job) []scheduler.Job {
	jobs = slices.Clone(jobs)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(jobs), func(a, b int) {
		jobs[a], jobs[b] = jobs[b], jobs[a]
	})
	return jobs
}

func wantOrder(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("order differs:\ngot  %v\nwant %v", got, want)
	}
}
