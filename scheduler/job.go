package scheduler

import (
	"math"
	"time"
)

// Job is a batch's lines of one model, as the queue orders them.
type Job struct {
	ID       string // unique; opaque here
	Tenant   string
	Model    string
	Priority int           // higher goes first under the priority policy
	Window   time.Duration // as promised to the user; 0: best effort
	Created  time.Time
	// when the first line must be under way; zero: no such promise, or kept already
	StartBy  time.Time
	Deadline time.Time // when the last line must be done; zero: none
	Lines    int       // remaining
	Work     float64   // remaining, in work units: milliseconds of engine iteration cost
	// work units per second this job may expect; 0: unknown, Config.AssumedRate stands in
	Rate float64
	// Infeasible says that the deadline can't be met whatever is done. Where jobs whose time runs
	// out overtake others, this one does not: it would take from those that can be met.
	Infeasible bool
}

// instant is a Unix time in microseconds: whole ones are exact in a float64 up to the year 2255.
type instant = float64

var never = math.Inf(1)

// instantOf counts an absent time as never.
func instantOf(t time.Time) instant {
	if t.IsZero() {
		return never
	}
	return instant(t.UnixMicro())
}

// timeOf is the first microsecond not before i; the zero time for never.
func timeOf(i instant) time.Time {
	if i >= math.MaxInt64 {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Ceil(i))).UTC()
}

// due is the first instant at which a promise of the job would be broken.
func (j Job) due() instant {
	return min(instantOf(j.Deadline), instantOf(j.StartBy))
}

// latestStart is the last instant at which the remaining work can start and still keep every
// promise.
func (j Job) latestStart(assumedRate float64) instant {
	rate := j.Rate
	if !(rate > 0) {
		rate = assumedRate
	}
	return min(instantOf(j.Deadline)-instant(max(j.Work, 0)/rate*1e6), instantOf(j.StartBy))
}
