package headroom

import (
	"slices"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/faults"
)

// Config is the configuration of the policy headroom. docs/headroom-details.md says what each part
// does.
type Config struct {
	// Start is the number of lines on a runner of which nothing is known yet, at least 1: with 2,
	// the second shows the cost of a line. It is no key: tests set it.
	Start int `yaml:"-"`
	// PerRunner limits how many lines a runner carries, at least 1. Default: 512, more than
	// engines run at once; if it is known what the engine can run, that is the limit.
	PerRunner int `yaml:"per_runner"`
	// PerPool limits how many lines the pool carries, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
	// Streams says which lines are streamed, which shows the time of iterations as they happen: off
	// (none; requests go out as users wrote them, and metrics show the time), some (a few on each
	// runner) or all, which harvests the most. Default: off, because a safe default must not change
	// what users wrote.
	Streams Streams `yaml:"streams"`
	// Tuning holds what the policy can be tuned by; tidefill tune searches for values.
	Tuning Tuning `yaml:"tuning"`
}

// Streams says which lines are streamed.
type Streams string

// The values of Streams.
const (
	StreamsOff  Streams = "off"
	StreamsSome Streams = "some"
	StreamsAll  Streams = "all"
)

// someStreams is how many lines of a runner are streamed with StreamsSome: enough for one to decode
// at any time.
const someStreams = 4

// perRunner returns how many lines of a runner are streamed.
func (s Streams) perRunner() int {
	switch s {
	case StreamsAll:
		return flowcontrol.NoLimit
	case StreamsSome:
		return someStreams
	default:
		return 0
	}
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{Start: 2, PerRunner: 512, Streams: StreamsOff, Tuning: defaultTuning()}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	all.AtLeast("per_runner", c.PerRunner, 1)
	all.AtLeast("per_pool", c.PerPool, 0)
	if !slices.Contains([]Streams{StreamsOff, StreamsSome, StreamsAll}, c.Streams) {
		all.Add("streams", "is %q, want off, some or all", c.Streams)
	}
	all.AddAll("tuning", c.Tuning.validate())
	return all.Err()
}
