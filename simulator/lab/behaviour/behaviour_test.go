package behaviour_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/behaviour"
)

// Policies that act differently have different versions.
func TestBehaviour(t *testing.T) {
	version := func(policy string, set ...func(*simulator.Policy)) string {
		candidate, err := compare.Configuration{}.Candidate(policy)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range set {
			change(&candidate.Policy)
		}
		hash, err := behaviour.Of(candidate.Policy)
		if err != nil {
			t.Fatal(err)
		}
		return hash
	}
	four := version("fixed,per_runner=4")
	if again := version("fixed,per_runner=4"); again != four {
		t.Errorf("the same policy has the versions %s and %s", four, again)
	}
	if other := version("fixed,per_runner=5"); other == four {
		t.Errorf("four and five lines have the version %s", four)
	}
	later := version("fixed,per_runner=4", func(p *simulator.Policy) {
		p.Scale.Deadline.Guard += 5 * time.Minute
	})
	if later == four {
		t.Errorf("replicas bought later have the version %s too", later)
	}
}
