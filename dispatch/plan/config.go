package plan

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// Config configures the planner. Start from DefaultConfig.
type Config struct {
	// Retry sets which lines are sent again.
	Retry  RetryConfig
	Inline InlineConfig
	Tuning
}

// InlineConfig configures interactive requests that pass through this process.
type InlineConfig struct {
	// Enabled says that the interactive requests of pools pass through. Then they are readings,
	// where engines show none.
	Enabled bool
	// Flows sets their order.
	Flows flows.Config
	// MaxRunning limits those in flight on a runner, before readings show a lower limit.
	MaxRunning int
	// MaxWaiting limits those that wait in all pools together, each of which may have an equal
	// share. Each holds a connection, and one that can't be accepted has no class. 0: no limit but
	// that of Flows.
	MaxWaiting int
}

// DefaultInline returns the documented defaults. They are not enabled.
func DefaultInline() InlineConfig {
	return InlineConfig{Flows: flows.DefaultConfig(), MaxRunning: maxRunning}
}

// Tuning holds what planning can be tuned by.
type Tuning struct {
	// LookAhead sets how many lines of a model are kept in memory beyond those in flight, so that a
	// free slot does not wait for the store. Default: 2048.
	LookAhead int `yaml:"look_ahead"`
	// LookAheadTokens limits the memory of these lines: no more are read ahead once those of a pool
	// have this many prompt tokens. It is no key: tests set it.
	LookAheadTokens int `yaml:"-"`
	// Breaker sets when a runner gets no lines for a while.
	Breaker BreakerConfig `yaml:"breaker"`
	// Cost estimates the work of lines, by which jobs are ordered and tenants share. Only the
	// ratios matter for the order.
	Cost costmodel.Estimate `yaml:"cost"`
}

// RetryConfig sets which lines are sent again.
type RetryConfig struct {
	// Attempts limits the attempts for a line, the first included; the last error becomes its
	// result. Answers 429 and 503, and runners that cannot be reached, do not count. Default: 3.
	Attempts int `yaml:"attempts"`
	// On lists the HTTP statuses after which a line is sent again. Default: 408, 409, 425, 500,
	// 502, 504.
	On []int `yaml:"on"`

	RetryTuning `yaml:"tuning"`
}

// RetryTuning sets the delays and limits of retries.
type RetryTuning struct {
	// Base sets the delay before the second attempt; it doubles with each further one. Default:
	// 500ms.
	Base time.Duration `yaml:"base"`
	// Max limits the delay. Default: 30s.
	Max time.Duration `yaml:"max"`
	// Deaths limits how many times a line may be in flight when its runner fails. Then the line
	// fails as the probable cause. Default: 5.
	Deaths int `yaml:"deaths"`
	// Sheds limits how many times a line may be answered 429 or 503, or 502 at once by a gateway,
	// where most other lines of its model are answered. Then the line fails with the error
	// shed_too_often. An answer while no other line of the model is in flight counts half, and only
	// after the usual delays. While others are refused too, as in an outage, none counts. It is no
	// key: tests set it.
	Sheds int `yaml:"-"`
}

const (
	// maxSheds is enough for no line to fail by chance in a pool that sheds two of five.
	maxSheds = 20
	// lookAheadTokens are some 7 MB of text.
	lookAheadTokens = 2_000_000
	// maxRunning is the number of sequences that vLLM runs at once by default.
	maxRunning = 256
	// failures opens a breaker soon, and not at one lost connection.
	failures = 3
)

// BreakerConfig sets when a runner gets no lines for a while.
type BreakerConfig struct {
	// Failures is the number of failures in a row (unreachable, connection lost) that open the
	// breaker of a runner. It is no key.
	Failures int `yaml:"-"`
	// Base sets for how long the breaker is open at first, after three failures in a row
	// (unreachable, connection lost) and before one line is sent as a trial; it doubles each time
	// that the trial fails. Default: 500ms.
	Base time.Duration `yaml:"base"`
	// Max limits that time. Default: 15s.
	Max time.Duration `yaml:"max"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{
		Retry: RetryConfig{
			Attempts: 3, On: []int{408, 409, 425, 500, 502, 504},
			RetryTuning: RetryTuning{
				Base: 500 * time.Millisecond, Max: 30 * time.Second, Deaths: 5, Sheds: maxSheds,
			},
		},
		Inline: DefaultInline(),
		Tuning: Tuning{
			LookAhead: 2048, LookAheadTokens: lookAheadTokens,
			Breaker: BreakerConfig{
				Failures: failures, Base: 500 * time.Millisecond, Max: 15 * time.Second,
			},
			Cost: costmodel.DefaultEstimate(),
		},
	}
}

// Validate reports every value that is out of range, with the path of its key in package dispatch's
// configuration.
func (c Config) Validate() error {
	var faults []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	require(c.Retry.Attempts >= 1,
		"retry.attempts: is %d, must be at least 1 (the first attempt counts)", c.Retry.Attempts)
	for _, status := range c.Retry.On {
		require(status >= 400 && status <= 599, "retry.on: %d is no HTTP error status", status)
	}
	require(c.Retry.Base > 0 && c.Retry.Max >= c.Retry.Base,
		"retry.tuning: base %v and max %v must be positive and in order", c.Retry.Base, c.Retry.Max)
	require(c.Retry.Deaths >= 1, "retry.tuning.deaths: is %d, must be at least 1", c.Retry.Deaths)
	require(c.Breaker.Base > 0 && c.Breaker.Max >= c.Breaker.Base,
		"tuning.breaker: base %v and max %v must be positive and in order", c.Breaker.Base,
		c.Breaker.Max)
	require(c.Inline.MaxRunning >= 1, "inline.max_running: is %d, must be at least 1",
		c.Inline.MaxRunning)
	if err := c.Inline.Flows.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("inline.%w", err))
	}
	if err := c.Cost.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("tuning.cost.%w", err))
	}
	require(c.LookAhead >= 1, "tuning.look_ahead: is %d, must be at least 1", c.LookAhead)
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
