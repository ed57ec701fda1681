package simulator

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Setup is the input of a run. The caller has read the files that the scenario names.
type Setup struct {
	Scenario scenario.Scenario
	// Profile is what Scenario.Pool.Profile names.
	Profile engine.Profile
	// Profiles are what Scenario.BatchPools name, where they name any.
	Profiles map[string]engine.Profile
	// Trace is what Scenario.Interactive.Trace names; nil: there is none.
	Trace *workload.Trace
	// Shape is the curve of the file that Scenario.Interactive.Shape names; nil: it names no file.
	Shape *workload.Curve
	// ExtraJobs are added to those of the scenario.
	ExtraJobs []workload.Job
	Policy    Policy
	Seed      uint64
	Outputs   Outputs

	alone     bool      // only the most important class of flows comes
	newFiller FillerFor // nil: none
}

// Policy is the part of the daemon's configuration that decides.
type Policy struct {
	Scheduler scheduler.Config
	Flow      flowcontrol.Config
	Plan      plan.Config
	// Scale configures how replicas are asked for. Its zero value is the default.
	Scale autoscale.Config
	// ChunkLines is the number of lines that the planner gets at a time.
	ChunkLines int
}

// Engine returns the configuration of the first pool's replicas: the profile with the scenario's
// limits.
func (s Setup) Engine() engine.Config {
	pool := s.Scenario.Pool
	cfg := engine.DefaultConfig(s.Profile)
	cfg.Scheduling, cfg.PrefixCaching, cfg.Noise = pool.Scheduling, pool.PrefixCaching, pool.Noise
	cfg.MaxRun = maxRun
	set := func(limit *int, own int) {
		if own > 0 {
			*limit = own
		}
	}
	set(&cfg.Profile.KVTokens, pool.KVTokens)
	set(&cfg.Profile.MaxBatchedTokens, pool.MaxBatchedTokens)
	set(&cfg.Profile.MaxSeqs, pool.MaxSeqs)
	return cfg
}

// BatchEngine returns the configuration of the replicas of a further pool.
func (s Setup) BatchEngine(b scenario.BatchPool) engine.Config {
	cfg := s.Engine()
	if b.Profile != "" {
		cfg.Profile = s.Profiles[b.Profile]
	}
	set := func(limit *int, own int) {
		if own > 0 {
			*limit = own
		}
	}
	set(&cfg.Profile.KVTokens, b.KVTokens)
	set(&cfg.Profile.MaxBatchedTokens, b.MaxBatchedTokens)
	set(&cfg.Profile.MaxSeqs, b.MaxSeqs)
	return cfg
}

// maxRun is the number of iterations of pure decoding that an engine plans at once. It changes the
// speed of a simulation and nothing else.
const maxRun = 64

func (s Setup) seed() workload.Seed { return workload.Seed(s.Seed) }

// Jobs returns the scenario's jobs, from the first with each call.
func (s Setup) Jobs() (workload.Jobs, error) {
	list := make([]workload.Job, 0, len(s.Scenario.Jobs))
	for _, j := range s.Scenario.Jobs {
		kind, err := j.LineKind()
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", j.Name, err)
		}
		lines := j.Lines
		if lines == 0 {
			lines = workload.Backlog
		}
		list = append(list, workload.Job{Name: j.Name, Tenant: j.Tenant, At: j.At,
			Window: j.Window, Lines: lines, Kind: kind})
	}
	listed, err := workload.List(s.seed(), append(list, s.ExtraJobs...)...)
	if stream := s.Scenario.JobStream; err == nil && stream.PerHour > 0 {
		cfg := workload.DefaultJobs(s.seed(), stream.PerHour)
		cfg.Median, cfg.Sigma, cfg.Max = stream.Lines.Median, stream.Lines.Sigma, stream.Lines.Max
		more, err := workload.Generate(cfg)
		if err != nil {
			return nil, err
		}
		until := s.Scenario.Horizon
		if stream.Until > 0 {
			until = stream.Until
		}
		return workload.MergeJobs(listed, workload.JobsUntil(more, until)), nil
	}
	return listed, err
}

// engineProblems puts the keys of a scenario's pool before what is wrong with its engines, which
// name keys of profiles. batched is the pool's own limit of tokens; 0: it is the profile's, so that
// too many sequences are to blame.
func engineProblems(path string, batched int, err error) error {
	var all []error
	for _, problem := range strings.Split(err.Error(), "\n") {
		key, limit := strings.CutPrefix(problem, "profile.")
		switch {
		case limit && batched == 0 && strings.HasPrefix(key, "max_batched_tokens"):
			all = append(all, fmt.Errorf("%s.max_seqs: %s", path, problem))
		case limit && !strings.HasPrefix(key, "cost_model"):
			all = append(all, fmt.Errorf("%s.%s", path, key))
		default:
			all = append(all, fmt.Errorf("%s.profile: %s", path, problem))
		}
	}
	return errors.Join(all...)
}

// Check reports what is wrong with the setup before anything runs, each problem beginning with the
// path of its key, if it is about one.
func (s Setup) Check() error {
	if err := s.Scenario.Validate(); err != nil {
		return err
	}
	cfg := s.Engine()
	if cfg.Profile.KVTokens == 0 {
		return errors.New(
			"pool.kv_tokens must be given: the profile does not know how many tokens fit into " +
				"the KV cache")
	}
	if err := cfg.Validate(); err != nil {
		return engineProblems("pool", s.Scenario.Pool.MaxBatchedTokens, err)
	}
	for i, b := range s.Scenario.BatchPools {
		cfg, path := s.BatchEngine(b), fmt.Sprintf("batch_pools[%d]", i)
		if cfg.Profile.KVTokens == 0 {
			return fmt.Errorf(
				"%s.kv_tokens must be given: the profile does not know how many tokens fit into "+
					"the KV cache", path)
		}
		if err := cfg.Validate(); err != nil {
			return engineProblems(path, b.MaxBatchedTokens, err)
		}
	}
	if s.Scenario.Interactive.Verbatim() && s.Trace.Span() < s.Scenario.Horizon {
		return fmt.Errorf(
			"horizon is %s, but interactive.trace ends after %s; shorten the horizon, or give "+
				"interactive.rate (the trace's is %.3g a second) to have it repeated",
			s.Scenario.Horizon, s.Trace.Span().Round(time.Second), s.Trace.Rate())
	}
	if err := s.checkFlows(); err != nil {
		return err
	}
	// Both refuse what the fields allow one by one.
	_, traffic := s.Traffic()
	_, jobs := s.Jobs()
	return errors.Join(traffic, jobs)
}
