package simulator

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

func TestJobsOfOwnLengths(t *testing.T) {
	s := tiny(t, "0,20,5\n", scenario.Job{Name: "a", Lines: 3, Input: scenario.Length{Median: 100},
		Output: scenario.Length{Median: 7, Sigma: 1, Max: 9}, Shared: 0.32})
	jobs, err := s.Jobs()
	if err != nil {
		t.Fatal(err)
	}
	j, _ := jobs.Next()
	if j.Kind.Name != "100 in, 7 out" {
		t.Errorf("kind is called %q", j.Kind.Name)
	}
	for i := range j.Lines {
		line := j.Line(i)
		if line.Input != 100 || line.Output > 9 || len(line.Blocks(nil, 16)) != 2 {
			t.Errorf("line %d is %+v", i, line)
		}
	}
}

// Tenants share the pool, however many jobs each has.
func TestTenantsOfJobsShare(t *testing.T) {
	own := func(name, tenant string) scenario.Job {
		return scenario.Job{Name: name, Tenant: tenant, Input: scenario.Length{Median: 30},
			Output: scenario.Length{Median: 20}}
	}
	done := func(tenants ...string) map[string]int {
		s := tiny(t, "0,20,5\n200,20,5\n", own("a", tenants[0]), own("b", tenants[1]),
			own("c", tenants[2]))
		s.Scenario.Horizon = 3 * time.Minute
		fixed(4)(&s)
		s.Policy.Scheduler.Tuning.Quantum = 1000 // several turns in the run
		sim, _, err := simulate(s, true, silent)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]int{}
		for _, j := range sim.dispatcher.jobs {
			all[j.Name] += j.done
		}
		return all
	}
	if d := done("x", "x", "x"); min(d["a"], d["b"], d["c"]) < max(d["a"], d["b"], d["c"])*2/3 {
		t.Errorf("jobs of one tenant got %v lines, want about a third of them each", d)
	}
	if d := done("x", "x", "y"); d["c"] < 9*(d["a"]+d["b"])/10 {
		t.Errorf("jobs of x, x and y got %v lines, want half of them for y", d)
	}
}
