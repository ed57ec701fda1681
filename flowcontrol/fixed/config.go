package fixed

import "github.com/tidefill/tidefill/internal/faults"

// Config is the configuration of the policy fixed.
type Config struct {
	// PerRunner limits how many batch lines each runner carries, at least 1. Default: 64, a quarter
	// of the 256 sequences that vLLM runs at once by default, so that interactive requests find
	// free sequences.
	PerRunner int `yaml:"per_runner"`
	// PerPool limits how many lines the pool carries, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
	// Runners is how many runners of a pool carry lines, the first by name; the others stay free
	// for interactive requests. 0: all. Default: 0.
	Runners int `yaml:"runners"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{PerRunner: 64} }

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	all.AtLeast("per_runner", c.PerRunner, 1)
	all.AtLeast("per_pool", c.PerPool, 0)
	all.AtLeast("runners", c.Runners, 0)
	return all.Err()
}
