// Package behaviour identifies the code of a policy by what the policy does.
package behaviour

import (
	"sync"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare/results"
	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// The pools whose results identify the code: so many of the mixture, so long, and one that scales.
const (
	probes        = 12
	probeHorizon  = 150 * time.Second
	scaledHorizon = 20 * time.Minute
)

// Of returns a hash of what a policy does to a few short pools. It changes with the engines,
// the simulator, the distributions, the autoscaler and the policy, and not with other policies. So
// it is a version of results of a policy that is simple enough to show on short pools what it does.
func Of(policy simulator.Policy) (string, error) {
	key, err := results.Key(policy)
	if err != nil {
		return "", err
	}
	compute, _ := behaviours.LoadOrStore(key, sync.OnceValues(func() (string, error) {
		return behaviour(policy)
	}))
	return compute.(func() (string, error))()
}

// behaviours holds the functions that compute the behaviour of a policy once, by its key.
var behaviours sync.Map

func behaviour(policy simulator.Policy) (string, error) {
	mixture, err := random.LookupFamily("")
	if err != nil {
		return "", err
	}
	source := random.Source{Seed: 1, Family: mixture, Horizon: probeHorizon}
	var pools []random.Pool
	for number := range probes {
		pools = append(pools, source.Sketch(number))
	}
	source.Horizon = scaledHorizon
	pools = append(pools, scaled(source.Sketch(0)))

	var probed []probe
	for _, pool := range pools {
		setup := pool.Setup()
		setup.Policy = policy
		r, err := simulator.RunBatch(setup, func(float64) error { return nil })
		if err != nil {
			return "", err
		}
		probed = append(probed, probe{pool.Scenario, r})
	}
	return results.Key(probed)
}

// scaled returns a pool with what random ones lack: a number of replicas that changes, replicas and
// daemons that fail, a pool for batch work alone, and deadlines.
func scaled(pool random.Pool) random.Pool {
	s := &pool.Scenario
	s.Pool.Replicas, s.Pool.Min, s.Pool.Max = 2, 1, 4
	s.Interactive.Rate /= 4
	s.BatchPools = []scenario.BatchPool{{Name: "spot", Scaling: scenario.Scaling{Max: 3}}}
	s.Jobs = []scenario.Job{
		{Name: "due", Kind: "bal", Window: scaledHorizon / 2, Lines: 2000},
		{Name: "later", Kind: "bal", At: scaledHorizon / 4, Window: scaledHorizon, Lines: 2000},
	}
	s.Faults = []scenario.Fault{
		{At: 3 * time.Minute, Kind: scenario.Crash, Replicas: []int{1}, For: time.Minute,
			Lost: scenario.Retried},
		{At: 8 * time.Minute, Kind: scenario.Slow, Replicas: []int{0}, For: time.Minute, Factor: 2},
		{At: 12 * time.Minute, Kind: scenario.Restart, For: 10 * time.Second},
	}
	return pool
}

// probe is a scenario and its result.
type probe struct {
	Scenario any
	Result   simulator.Result
}
