package results

import (
	"sync"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/random"
)

// The pools whose results identify the code: so many of the mixture, so long.
const (
	probes       = 12
	probeHorizon = 150 * time.Second
)

// Behaviour returns a hash of what a policy does to a few short pools. It changes with the engines,
// the simulator, the distributions and the policy, and not with other policies. So it is a version
// of results of a policy that is simple enough to show on short pools what it does.
func Behaviour(policy simulator.Policy) (string, error) {
	key, err := Key(policy)
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
	var results []probe
	for number := range probes {
		source := random.Source{Seed: 1, Family: mixture, Horizon: probeHorizon}
		pool := source.Sketch(number)
		setup := pool.Setup()
		setup.Policy = policy
		r, err := simulator.RunBatch(setup, func(float64) error { return nil })
		if err != nil {
			return "", err
		}
		results = append(results, probe{pool.Scenario, r})
	}
	return Key(results)
}

// probe is a scenario and its result.
type probe struct {
	Scenario any
	Result   simulator.Result
}
