package aimd

import (
	"time"

	"github.com/tidefill/tidefill/internal/faults"
)

// Config is the configuration of the policy aimd.
type Config struct {
	// Start is a new runner's limit, in lines, at least 1; more than per_runner counts as that.
	// Default: 16, few enough for any engine that serves more than one user, many enough that a
	// large one is well used within its first minutes.
	Start int `yaml:"start"`
	// Min is the limit that sheds leave a runner at least, at least 1. Default: 1, so that every
	// runner is still tried and none gets more than it takes.
	Min int `yaml:"min"`
	// PerRunner limits how many lines a runner carries, at least 1. An engine that queues instead
	// of shedding gets that many in the end. Default: 128, half of the 256 sequences that vLLM runs
	// at once by default.
	PerRunner int `yaml:"per_runner"`
	// PerPool limits how many lines the pool carries, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
	// RequestsPerMinute is the number of requests that the provider of the pool's runners grants;
	// 0: it is unknown. Default: 0.
	RequestsPerMinute int `yaml:"requests_per_minute"`
	// TokensPerMinute is the number of tokens, of prompts and answers, that the provider grants; 0:
	// it is unknown. Default: 0.
	TokensPerMinute int `yaml:"tokens_per_minute"`
	// Money limits what the lines cost a day. It is no key: the fallback of a pool sets it.
	Money Money `yaml:"-"`
	// Increase is how many lines a runner's limit gains after as many answers as the limit, none of
	// them shed. It is 1 but in tests: more is found as soon, and overshoots.
	Increase int `yaml:"-"`
	// Decrease is what a runner's limit is multiplied by when it sheds, above 0 and below 1, but at
	// most every 2s. A lower value sheds less and harvests less. Default: 0.7, as in TCP CUBIC: it
	// loses less of a good limit than 0.5 and still frees a third at once.
	Decrease float64 `yaml:"decrease"`
}

// decreaseEvery is the minimum time between two decreases of a runner, because lines that are shed
// together are one sign. A burst of refusals takes less to arrive.
const decreaseEvery = 2 * time.Second

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		Start:     16,
		Min:       1,
		PerRunner: 128,
		Increase:  1,
		Decrease:  0.7,
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	all.AtLeast("per_runner", c.PerRunner, 1)
	all.AtLeast("per_pool", c.PerPool, 0)
	all.AtLeast("start", c.Start, 1)
	all.AtLeast("min", c.Min, 1)
	all.AtLeast("requests_per_minute", c.RequestsPerMinute, 0)
	all.AtLeast("tokens_per_minute", c.TokensPerMinute, 0)
	all.AddAll("money", c.Money.Validate())
	if !(c.Decrease > 0 && c.Decrease < 1) {
		all.Add("decrease", "is %v, must be above 0 and below 1", c.Decrease)
	}
	return all.Err()
}
