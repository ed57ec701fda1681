package plan

import (
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// rate is the work per second that a pool brought while it had any, as an exponential mean over
// half a minute. Times in which nothing was under way don't count: they would make the pool look
// slow, and every large job urgent, after an idle night.
type rate struct {
	work    float64
	seconds float64 // in which it was done; both fade alike
	last    time.Time
}

const (
	rateMemory = 30.0 // seconds
	rateKnown  = 3.0  // seconds of work below which nothing is said yet
)

// resume begins to count time again after a rest.
func (r *rate) resume(now time.Time) { r.last = now }

func (r *rate) add(now time.Time, work float64) {
	if dt := now.Sub(r.last).Seconds(); dt > 0 {
		// exp(-dt/memory), near enough and the same on every processor
		keep := rateMemory / (rateMemory + dt)
		r.work *= keep
		r.seconds = portable.Rounded(r.seconds*keep) + portable.Rounded((1-keep)*rateMemory)
		r.last = now
	}
	r.work += work
}

// perSecond is 0 while too little is known.
func (r *rate) perSecond() float64 {
	if r.seconds < rateKnown {
		return 0
	}
	return r.work / r.seconds
}
