package headroom

import (
	"github.com/tidefill/tidefill/flowcontrol/internal/faults"
)

// Config is the configuration of the policy headroom. docs/headroom.md says what each part does.
type Config struct {
	// Start is how many lines a runner carries before anything is known of it, at least 1. Default:
	// 2, one to be streamed and one to measure that a second costs little.
	Start int `yaml:"start"`
	// PerRunner limits how many lines a runner carries, at least 1. Default: 512, more than
	// engines run at once; if it is known what the engine can run, that is the limit.
	PerRunner int `yaml:"per_runner"`
	// PerPool limits how many lines the pool carries, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
	// Streams is how many lines of a runner are streamed, at least 1. Default: 512, all: every
	// first token shows at once that a prompt is computed and that the next may start. With fewer,
	// starts wait for the answers of lines that are not streamed.
	Streams int `yaml:"streams"`
	// Tuning holds the constants of the policy.
	Tuning Tuning `yaml:"tuning"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Start: 2, PerRunner: 512, Streams: 512, Tuning: defaultTuning()}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	all.AtLeast("start", c.Start, 1)
	all.AtLeast("per_runner", c.PerRunner, 1)
	all.AtLeast("per_pool", c.PerPool, 0)
	all.AtLeast("streams", c.Streams, 1)
	all.AddAll("tuning", c.Tuning.validate())
	return all.Err()
}
