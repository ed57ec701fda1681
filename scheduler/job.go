package scheduler

import (
	"math"
	"time"
)

// Job is the lines of a batch for one model.
type Job struct {
	ID       string // unique
	Tenant   string
	Model    string
	Priority int           // of jobs that are equal otherwise, the higher goes first
	Window   time.Duration // from creation to deadline; 0: best effort
	Created  time.Time
	// StartBy is when the first line must have started. Zero: not required, or it has.
	StartBy  time.Time
	Deadline time.Time // when the last line must be answered; zero: none
	// DoneBy is when the job must be done so that jobs that are due later can still meet their
	// deadlines. It makes the job urgent earlier. Zero: Deadline.
	DoneBy time.Time
	Lines  int     // remaining
	Work   float64 // remaining, in work units: milliseconds of engine iteration
	// Rate is the work per second that the job can expect, in work units. 0: unknown;
	// Config.AssumedRate is used.
	Rate float64
	// Infeasible says that the deadline cannot be met in any case. Where urgent jobs overtake
	// others, this one does not, so that it takes nothing from jobs that can meet their deadlines.
	Infeasible bool
	// Weight is the share of the job among those of its tenant that share by work, TenantWeight
	// that of its tenant among the others; 0: 1, and as configured.
	Weight, TenantWeight float64
}

// instant is a Unix time in microseconds. Integers are exact in a float64 up to the year 2255.
type instant = float64

var never = math.Inf(1)

// instantOf converts a time. The zero time is never.
func instantOf(t time.Time) instant {
	if t.IsZero() {
		return never
	}
	return instant(t.UnixMicro())
}

// timeOf returns the first microsecond that is not before i, and the zero time for never.
func timeOf(i instant) time.Time {
	if i >= math.MaxInt64 {
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Ceil(i))).UTC()
}

// due returns the earlier one of Deadline and StartBy.
func (j Job) due() instant {
	return min(instantOf(j.Deadline), instantOf(j.StartBy))
}

// latestStart returns the last instant at which the remaining work can start and still meet
// Deadline and StartBy.
func (j Job) latestStart(assumedRate float64) instant {
	rate := j.Rate
	if !(rate > 0) {
		rate = assumedRate
	}
	return min(instantOf(j.Deadline)-instant(max(j.Work, 0)/rate*1e6), instantOf(j.StartBy))
}

// WorkReserve multiplies the remaining work when a job's urgency is decided. The rate and the
// lengths of answers are estimates, and both differ between the jobs of a pool, so what a job may
// lose by sharing grows with its work.
const WorkReserve = 1.5

// urgentStart returns the last instant at which the remaining work, with its reserve, can start if
// jobs that are due later are to meet their deadlines too.
func (j Job) urgentStart(assumedRate float64) instant {
	j.Work *= WorkReserve
	own := j.latestStart(assumedRate)
	if j.DoneBy.IsZero() {
		return own
	}
	j.Deadline = j.DoneBy
	return min(own, j.latestStart(assumedRate))
}
