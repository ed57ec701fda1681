package workload

import (
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// cox is a doubly stochastic Poisson process: its rate is itself a random process,
// constant over steps.
type cox struct {
	rate       func(time.Duration) float64 // requests a second; taken at the middle of a step
	step       time.Duration
	multiplier func() float64 // multiplies the rate of the next step; mean 1
	rng        *rand.Rand

	begin, end time.Duration // of the step
	now        time.Duration
	current    float64 // rate in the step
	silent     int     // steps in a row without a rate
}

// silence is how many steps without any rate end a process; a rate that is 0 for
// ever would otherwise be waited for.
const maxSilentSteps = 1 << 22

// next is the instant of the next arrival.
func (c *cox) next() (time.Duration, bool) {
	need := portable.Exponential(c.rng) // of the integral of the rate
	for {
		if left := portable.Rounded(c.current * (c.end - c.now).Seconds()); left > need {
			c.now += time.Duration(need / c.current * 1e9)
			return c.now, true
		} else {
			need -= left
		}
		c.begin, c.end, c.now = c.end, c.end+c.step, c.end
		c.current = c.rate(c.begin+c.step/2) * c.multiplier()
		if c.silent++; c.current > 0 {
			c.silent = 0
		}
		if c.silent > maxSilentSteps || c.end < c.begin {
			return 0, false
		}
	}
}
