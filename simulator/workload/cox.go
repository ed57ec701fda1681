package workload

import (
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// cox is a Cox process: a Poisson process whose rate is itself a random process, constant over
// steps.
type cox struct {
	rate       func(time.Duration) float64 // requests a second, at the middle of a step
	step       time.Duration
	multiplier func() float64 // of the rate, for the next step; mean 1
	bursts     *Bursts        // multiply the rate too; nil: there are none
	rng        *rand.Rand

	begin, end time.Duration // of the step
	now        time.Duration
	current    float64 // rate in the step
	silent     int     // consecutive steps with rate 0
}

// maxSilentSteps is how many consecutive steps with rate 0 end the process. Otherwise a rate that
// stays 0 would never return.
const maxSilentSteps = 1 << 22

// next returns the time of the next arrival.
func (c *cox) next() (time.Duration, bool) {
	need := portable.Exponential(c.rng) // of the integral of the rate
	for {
		rate, end := c.current, c.end
		if c.bursts != nil {
			multiplier, until := c.bursts.at(c.now)
			rate, end = rate*multiplier, min(end, until)
		}
		left := rate * (end - c.now).Seconds()
		if left > need {
			c.now += time.Duration(need / rate * 1e9)
			return c.now, true
		}
		need -= left
		if end < c.end {
			c.now = end
			continue
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
