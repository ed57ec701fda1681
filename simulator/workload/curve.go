package workload

import (
	"fmt"
	"slices"
	"time"
)

// Curve is the shape of a rate over time: linear between its points, periodic, with mean 1 over its
// period.
type Curve struct {
	at     []time.Duration // from 0, increasing
	value  []float64
	period time.Duration
}

// NewCurve normalizes rates at points of time that start at 0 and increase. After the last point
// the curve leads back to the first, which is repeated at period.
func NewCurve(at []time.Duration, rate []float64, period time.Duration) (*Curve, error) {
	if len(at) == 0 || len(at) != len(rate) {
		return nil, fmt.Errorf(
			"rate curve of %d times and %d rates: want as many of each, and at least one", len(at),
			len(rate))
	}
	if at[0] != 0 || period <= at[len(at)-1] {
		return nil, fmt.Errorf(
			"rate curve from %v to %v with period %v: want it to begin at 0 and to end before its "+
				"period", at[0], at[len(at)-1], period)
	}
	for i := range at {
		if i > 0 && at[i] <= at[i-1] {
			return nil, fmt.Errorf("rate curve: time %v follows %v: want times that increase",
				at[i], at[i-1])
		}
		if !(rate[i] >= 0 && rate[i] <= maxRate) {
			return nil, fmt.Errorf("rate curve: rate %v at %v: want a number from 0 to %g", rate[i],
				at[i], float64(maxRate))
		}
	}
	c := &Curve{at: slices.Clone(at), value: slices.Clone(rate), period: period}
	mean := c.mean()
	if mean == 0 {
		return nil, fmt.Errorf("rate curve: all rates are 0")
	}
	for i := range c.value {
		c.value[i] /= mean
	}
	return c, nil
}

// flat returns the constant curve 1.
func flat() *Curve {
	return &Curve{at: []time.Duration{0}, value: []float64{1}, period: time.Hour}
}

// Period returns the time after which the curve repeats.
func (c *Curve) Period() time.Duration { return c.period }

// At returns the rate at t as a multiple of the mean rate.
func (c *Curve) At(t time.Duration) float64 {
	t %= c.period
	if t < 0 {
		t += c.period
	}
	next, found := slices.BinarySearch(c.at, t)
	if found {
		return c.value[next]
	}
	last := next - 1
	share := float64(t-c.at[last]) / float64(c.pointAt(next)-c.at[last])
	return interpolate(c.value[last], c.value[next%len(c.value)], share)
}

// highest returns the highest multiple.
func (c *Curve) highest() float64 { return slices.Max(c.value) }

// meanUntil returns the mean from 0 to a time, which may exceed the period.
func (c *Curve) meanUntil(length time.Duration) float64 {
	whole := length / c.period
	full := float64(whole) * c.period.Seconds() // the mean over a period is 1
	return (full + c.area(length%c.period)) / length.Seconds()
}

func (c *Curve) mean() float64 { return c.area(c.period) / c.period.Seconds() }

// area returns the integral from 0 to an end within the first period.
func (c *Curve) area(end time.Duration) float64 {
	sum := 0.0
	for i, from := range c.at {
		to := min(c.pointAt(i+1), end)
		if to <= from {
			break
		}
		middle := from + (to-from)/2
		sum += (to - from).Seconds() * c.At(middle)
	}
	return sum
}

// pointAt returns the time of a point, including the first point of the next period.
func (c *Curve) pointAt(i int) time.Duration {
	if i == len(c.at) {
		return c.period
	}
	return c.at[i]
}

// interpolate returns the point at a share of the way from a to b.
func interpolate(a, b, share float64) float64 { return a + (b-a)*share }
