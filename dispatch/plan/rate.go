package plan

import (
	"time"
)

// rate measures the work per second of a pool, as an exponential mean over half a minute. Times
// without a line in flight do not count. Otherwise the rate would be too low after an idle time,
// and every large job would be urgent.
type rate struct {
	work    float64
	seconds float64 // in which it was done; both decay alike
	last    time.Time
}

const (
	rateMemory = 30.0 // seconds
	rateKnown  = 3.0  // seconds of work below which the rate is unknown
)

// resume continues counting time after a pause.
func (r *rate) resume(now time.Time) { r.last = now }

func (r *rate) add(now time.Time, work float64) {
	if dt := now.Sub(r.last).Seconds(); dt > 0 {
		// about exp(-dt/memory), and the same on every processor
		keep := rateMemory / (rateMemory + dt)
		r.work *= keep
		r.seconds = r.seconds*keep + (1-keep)*rateMemory
		r.last = now
	}
	r.work += work
}

// perSecond returns the rate. 0: there are too few measurements.
func (r *rate) perSecond() float64 {
	if r.seconds < rateKnown {
		return 0
	}
	return r.work / r.seconds
}
