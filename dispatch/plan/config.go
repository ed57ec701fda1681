package plan

import (
	"errors"
	"fmt"
	"time"
)

// Config holds the constants of planning.
type Config struct {
	// Retry says what is tried again.
	Retry RetryConfig `yaml:"retry"`
	// Breaker says when a runner is left alone.
	Breaker BreakerConfig `yaml:"breaker"`
	// Cost turns tokens into work units, milliseconds of engine iteration. Only ratios matter for
	// order.
	Cost CostConfig `yaml:"cost"`
	// LookAhead is how many lines are kept ready beyond those under way, so that a free slot never
	// waits for the store. Default 2048.
	LookAhead int `yaml:"look_ahead"`
	// LookAheadTokens bounds the same by weight, since ready lines are held in memory: prompt
	// tokens of a pool's ready lines, those being read included, beyond which no more are read
	// ahead. Default 2,000,000, some 7 MB of text.
	LookAheadTokens int `yaml:"look_ahead_tokens"`
}

// RetryConfig says what is tried again.
type RetryConfig struct {
	// Attempts per line, the first included. Sheds and unreachable runners don't count. Default 3.
	Attempts int `yaml:"attempts"`
	// On lists the HTTP statuses worth another attempt. Default 408, 409, 425, 500, 502, 504.
	On []int `yaml:"on"`
	// Base is the pause before the second attempt; it doubles with each further one. Default 500ms.
	Base time.Duration `yaml:"base"`
	// Max bounds the pause. Default 30s.
	Max time.Duration `yaml:"max"`
	// Deaths is how many times a line may be under way when its runner breaks down before it is
	// given up as the probable cause. Default 5.
	Deaths int `yaml:"deaths"`
	// Sheds is how many times a line may be answered 429 or 503 while most other lines of its model
	// are answered, before it is given up with the error shed_too_often. A shed while no other line
	// of the model is under way counts half, and only after the usual pauses. While others are shed
	// too, as in an outage, none counts. Default 8.
	Sheds int `yaml:"sheds"`
}

// BreakerConfig says when a runner is left alone.
type BreakerConfig struct {
	// Failures in a row (unreachable, died) that open the breaker. Default 3.
	Failures int `yaml:"failures"`
	// Base is how long it stays open at first; it doubles while the trial line fails too. Default
	// 500ms.
	Base time.Duration `yaml:"base"`
	// Max bounds that. Default 15s.
	Max time.Duration `yaml:"max"`
}

// CostConfig turns tokens into work units.
type CostConfig struct {
	// PromptToken is the work of one prompt token. Default 0.19, a 70B model on four A100.
	PromptToken float64 `yaml:"prompt_token"`
	// OutputToken is the work of one output token. Default 0.15.
	OutputToken float64 `yaml:"output_token"`
	// OutputTokens is how many a line is expected to bring before any was seen. Default 256.
	OutputTokens int `yaml:"output_tokens"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{
		Retry: RetryConfig{
			Attempts: 3, On: []int{408, 409, 425, 500, 502, 504}, Base: 500 * time.Millisecond,
			Max:    30 * time.Second,
			Deaths: 5, Sheds: 8,
		},
		Breaker:   BreakerConfig{Failures: 3, Base: 500 * time.Millisecond, Max: 15 * time.Second},
		Cost:      CostConfig{PromptToken: 0.19, OutputToken: 0.15, OutputTokens: 256},
		LookAhead: 2048, LookAheadTokens: 2_000_000,
	}
}

// Validate reports every value that makes no sense.
func (c Config) Validate() error {
	var faults []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	require(
		c.Retry.Attempts >= 1, "retry.attempts: is %d, must be at least 1 (the first attempt counts)", c.Retry.Attempts)
	for _, status := range c.Retry.On {
		require(status >= 400 && status <= 599, "retry.on: %d is no HTTP error status", status)
	}
	require(c.Retry.Base > 0 && c.Retry.Max >= c.Retry.Base,
		"retry: base %v and max %v must be positive and in order", c.Retry.Base, c.Retry.Max)
	require(c.Retry.Deaths >= 1, "retry.deaths: is %d, must be at least 1", c.Retry.Deaths)
	require(c.Retry.Sheds >= 1, "retry.sheds: is %d, must be at least 1", c.Retry.Sheds)
	require(c.Breaker.Failures >= 1, "breaker.failures: is %d, must be at least 1",
		c.Breaker.Failures)
	require(c.Breaker.Base > 0 && c.Breaker.Max >= c.Breaker.Base,
		"breaker: base %v and max %v must be positive and in order", c.Breaker.Base, c.Breaker.Max)
	require(c.Cost.PromptToken > 0 && c.Cost.OutputToken > 0 && c.Cost.OutputTokens > 0,
		"cost: prompt_token, output_token and output_tokens must be positive")
	require(c.LookAhead >= 1 && c.LookAheadTokens >= 1,
		"look_ahead and look_ahead_tokens: must be at least 1")
	return errors.Join(faults...)
}

// backoff is the pause before the retry that follows n earlier ones.
func (c RetryConfig) backoff(n int) time.Duration { return doubling(c.Base, c.Max, n) }

func doubling(base, limit time.Duration, n int) time.Duration {
	for ; n > 0 && base < limit; n-- {
		base *= 2
	}
	return min(base, limit)
}
