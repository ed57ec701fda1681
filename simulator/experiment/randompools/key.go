package randompools

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/experiment"
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/random"
)

// keyOf returns a hash of values.
func keyOf(parts ...any) (string, error) {
	content, err := json.Marshal(parts)
	if err != nil {
		return "", fmt.Errorf("key of a stored value: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16]), nil
}

// The pools whose results identify the simulator: so many of the mixture, so long.
const (
	probes       = 12
	probeHorizon = 150 * time.Second
)

// probeResults returns what a static policy does to a few short pools. It changes with the engines,
// the simulator, the policy fixed and the distributions, and not with other policies, so it serves
// as their version in keys.
var probeResults = sync.OnceValues(func() (string, error) {
	policy, err := staticPolicy()
	if err != nil {
		return "", err
	}
	any, err := random.LookupFamily("")
	if err != nil {
		return "", err
	}
	var results []probe
	for number := range probes {
		source := random.Source{Seed: 1, Family: any, Horizon: probeHorizon}
		pool := source.Sketch(number)
		setup := pool.Setup()
		setup.Policy = oracle.StaticSetting{Lines: 8}.Policy(policy)
		r, err := simulator.RunBatch(setup, func(float64) error { return nil })
		if err != nil {
			return "", err
		}
		results = append(results, probe{pool.Scenario, r})
	}
	return keyOf(results)
})

// probe is a scenario and its result.
type probe struct {
	Scenario any
	Result   simulator.Result
}

// staticPolicy returns the default configuration's policies, for references.
func staticPolicy() (simulator.Policy, error) {
	c, err := experiment.Configuration{}.Candidate("fixed")
	return c.Policy, err
}

// programHash identifies the program, whose policies may have changed since a result was stored.
var programHash = sync.OnceValues(func() (string, error) {
	name, err := os.Executable()
	if err != nil {
		return "", err
	}
	in, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)[:16]), nil
})
