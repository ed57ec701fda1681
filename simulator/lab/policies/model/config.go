package model

import "github.com/tidefill/tidefill/internal/faults"

// Config is the configuration of the policy model. The start, the limits and the reserves are those
// of the policy headroom.
type Config struct {
	// TargetShare is the share of slo.tpot that iterations shall take, above 0 and at most 2. Where
	// the objective is relative, they take slo.slowdown times as long as without lines instead.
	// Default: 0.8, which leaves the prompts of others their part.
	TargetShare float64 `yaml:"target_share"`
	// PromptTokens is how many prompt tokens of batch lines may wait on a runner when another line
	// starts, at least 1. Default: 1024, two chunks of a large model.
	PromptTokens int `yaml:"prompt_tokens"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{TargetShare: 0.8, PromptTokens: 1024} }

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	all.Within("target_share", c.TargetShare, 0.01, 2)
	all.AtLeast("prompt_tokens", c.PromptTokens, 1)
	return all.Err()
}
