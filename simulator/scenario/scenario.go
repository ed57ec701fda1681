package scenario

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Scenario is one story, told the same for every policy. Start from Default.
type Scenario struct {
	// Name is what the results are called by.
	Name string `yaml:"name"`
	// About says in a sentence what the scenario is for.
	About string `yaml:"about"`
	// Horizon is how long the story lasts. Requests that arrive in its first and last minute are not judged.
	Horizon time.Duration `yaml:"horizon"`

	Pool        Pool        `yaml:"pool"`
	Interactive Interactive `yaml:"interactive"`
	// Jobs are the batches, in any order.
	Jobs []Job `yaml:"jobs"`
}

// Edge is how much of a run's beginning and end is not judged: a pool that fills
// up and requests whose end is not seen say nothing of a policy.
const Edge = time.Minute

// Default is what a file need not say.
func Default() Scenario {
	return Scenario{
		Horizon: time.Hour,
		Pool:    Pool{Scheduling: engine.ByPriority, PrefixCaching: true, Noise: 0.01, Network: 20 * time.Millisecond},
		Interactive: Interactive{SLO: SLO{
			TTFT: 2 * time.Second, TTFTPrompt: 4000, TTFTPer1K: 200 * time.Millisecond, TPOT: 100 * time.Millisecond, Attainment: 0.99,
		}},
	}
}

// What a file may ask for at most, so that a slip of the finger is told at once
// and not after a day of computing.
const (
	mostReplicas = 1000
	longest      = 31 * 24 * time.Hour
	mostLines    = 50_000 // of a batch of the OpenAI API
	mostRate     = 10_000
)

// Validate reports every fault, each beginning with the path of its key.
func (s Scenario) Validate() error {
	var all faults
	all.check(s.Name != "", "name is empty; results are called by it")
	all.check(s.Horizon > 2*Edge && s.Horizon <= longest, "horizon is %s, want more than %s, since the first and last minute are not judged, and at most %s", s.Horizon, 2*Edge, longest)
	return errors.Join(append(all, s.Pool.validate(), s.Interactive.validate(), validateJobs(s.Jobs))...)
}

// faults collects what is wrong, each beginning with the path of its key.
type faults []error

func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}
