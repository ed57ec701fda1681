package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Scenario is what is simulated, the same for every policy. Start from Default.
type Scenario struct {
	// Name identifies the scenario in results.
	Name string `yaml:"name"`
	// Base is another scenario, relative to this one's folder. Keys of this one override the
	// base's. A list replaces the base's.
	Base string `yaml:"base"`
	// About describes the purpose of the scenario in a sentence.
	About string `yaml:"about"`
	// Horizon is the length of the simulated time. Requests that arrive in its first and last
	// minute are not counted.
	Horizon time.Duration `yaml:"horizon"`

	Pool        Pool        `yaml:"pool"`
	Interactive Interactive `yaml:"interactive"`
	// Metrics configures what a policy can observe.
	Metrics Metrics `yaml:"metrics"`
	// BatchPools are further pools, which serve batch lines alone.
	BatchPools []BatchPool `yaml:"batch_pools"`
	// Jobs are the batches, in any order.
	Jobs []Job `yaml:"jobs"`
	// JobStream generates more jobs.
	JobStream JobStream `yaml:"job_stream"`
	// Faults happen to replicas.
	Faults []Fault `yaml:"faults"`
	// Goals are the limits that a policy must keep.
	Goals Goals `yaml:"goals"`
}

// Edge is the time at the beginning and the end of a run that is not counted: while the pool fills
// up, and while the end of requests is not seen.
const Edge = time.Minute

// Default returns the defaults of a scenario file.
func Default() Scenario {
	return Scenario{
		Horizon: time.Hour,
		Pool: Pool{
			Scheduling: engine.ByPriority, PrefixCaching: true, Noise: 0.01, Router: LeastWork,
			Network: 20 * time.Millisecond, Discovery: 5 * time.Second,
			// A 70B model on a node that has its image; the bounds are those seen.
			Start: Start{Median: 150 * time.Second, Sigma: 0.25, Min: time.Minute,
				Max: 5 * time.Minute, NodeTime: 200 * time.Second, Fail: 0.02},
			Drain: Drain{Batch: time.Minute, Interactive: 2 * time.Minute},
		},
		Interactive: Interactive{SLO: SLO{
			TTFT: 2 * time.Second, TTFTPrompt: 4000, TTFTPer1K: 200 * time.Millisecond,
			TPOT: 100 * time.Millisecond, Attainment: 0.99,
		}},
		Metrics:   defaultMetrics(),
		JobStream: JobStream{Lines: Length{Median: 5000, Sigma: 1.5, Max: maxLines}},
	}
}

// These bound what a file may ask for, so that a typing error is reported at once and not after a
// day of computing.
const (
	maxReplicas = 1000
	maxHorizon  = 31 * 24 * time.Hour
	maxLines    = 50_000 // of a batch in the OpenAI API
	maxRate     = 10_000
)

// Validate reports every error, each beginning with the path of its key.
func (s Scenario) Validate() error {
	var all problems
	all.check(s.Name != "", "name is empty; results are called by it")
	all.check(s.Horizon > 2*Edge && s.Horizon <= maxHorizon,
		"horizon is %s, want more than %s, since the first and last minute are not counted, and "+
			"at most %s", s.Horizon, 2*Edge, maxHorizon)
	return errors.Join(append(all,
		s.Pool.validate(), s.Interactive.validate(), s.Interactive.Traffic.validate(
			s.Interactive.Generator != "", s.Horizon),
		s.Metrics.validate(s.Horizon, max(s.Pool.Replicas, s.Pool.Max)),
		validateBatchPools(s.BatchPools), validateJobs(s.Jobs, s.JobStream),
		s.JobStream.validate(s.Horizon), s.validateFaults(), s.validateFlows(),
		s.Goals.validate())...)
}

// Until returns the scenario with a shorter horizon, without what lies beyond it.
func (s Scenario) Until(horizon time.Duration) Scenario {
	s.Horizon = horizon
	s.Interactive.Traffic = s.Interactive.Traffic.until(horizon)
	s.Metrics = s.Metrics.until(horizon)
	s.JobStream.Until = min(s.JobStream.Until, horizon)
	s.Faults = slices.DeleteFunc(slices.Clone(s.Faults), func(f Fault) bool {
		return f.At >= horizon
	})
	return s
}

// problems collects errors, each beginning with the path of its key.
type problems []error

func (f *problems) check(ok bool, format string, args ...any) {
	if !ok {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// add puts a path before each of the errors below it.
func (f *problems) add(path string, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			*f = append(*f, fmt.Errorf("%s.%w", path, e))
		}
	}
}

// checkSpan checks a period of time.
func (f *problems) checkSpan(path string, at, length, horizon time.Duration) {
	f.check(at >= 0 && at < horizon, "%s.at is %s, want 0 to below the horizon, %s", path, at,
		horizon)
	f.check(length > 0 && (at < 0 || at >= horizon || length <= horizon-at),
		"%s.for is %s, want above 0 and no longer than to the horizon, %s", path, length, horizon)
}

// checkRamp checks the time in which a value changes.
func (f *problems) checkRamp(path string, from, to, horizon time.Duration) {
	f.check(from >= 0 && from < to, "%s.from is %s, want 0 to below %s.to, %s", path, from, path,
		to)
	f.check(to <= horizon, "%s.to is %s, want no later than the horizon, %s", path, to, horizon)
}
