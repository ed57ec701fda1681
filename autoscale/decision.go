package autoscale

import "time"

// Decision is the result of a controller's step.
type Decision struct {
	// Pools has an element for each of State.Pools, in their order.
	Pools []Wanted
	// Jobs lists the jobs that are not paused: those with a deadline, the earliest first, then the
	// others.
	Jobs []Forecast
	// Wake is the latest time of the next step. An event that changes the work or the replicas
	// makes a step due at once.
	Wake time.Time
}

// Wanted is the decision for a pool.
type Wanted struct {
	Pool string
	// Replicas is the number that should exist, starting ones included and draining ones not. Start
	// the missing ones at once.
	Replicas int
	// Reported is Replicas plus the draining ones. Report it to an autoscaler that removes a
	// replica as soon as the number decreases, so that the number decreases only when a replica is
	// empty.
	Reported int
	// Reason says why the number is not smaller by one.
	Reason Reason
	// Drain lists the replicas to drain, in this order, as many as exist beyond Replicas. If
	// another autoscaler owns the number of replicas, send these no new lines; it will then find
	// them unused.
	Drain []string
	// GiveUp lists starting replicas that have taken too long. End them and start others.
	GiveUp []string
	// Closed says that the pool must get no batch lines at all.
	Closed bool
	// Terms explains how the number was computed.
	Terms Terms
}

// Terms explains a number of replicas. It is for display only.
type Terms struct {
	// Interactive is the number that the forecast traffic needs, Deadline the number that deadlines
	// need in total, both before bounds, hold times and rate limits.
	Interactive, Deadline int
	// Rate is the forecast of interactive requests per second until a replica requested now would
	// be ready. Seasonal says that the forecast follows the usual day.
	Rate     float64
	Seasonal bool
	// Harvest is the expected work of a replica now, in milliseconds per second. Share is the
	// measured share of predicted harvest.
	Harvest, Share float64
	// ColdStart is the expected time from the request of a replica until it is ready.
	ColdStart time.Duration
	// Binding is the deadline that needs the most replicas. Zero: none needs any.
	Binding time.Time
	// LatestStart is when a replica must be requested at the latest, if none is requested now.
	// Zero: no replica is needed within the horizon.
	LatestStart time.Time
}

// Reason names what determines a number of replicas. It is a metric label and is shown to users.
type Reason string

const (
	// ReasonNone: nothing needs replicas; the number is 0.
	ReasonNone Reason = ""
	// ReasonMinimum: Pool.Min.
	ReasonMinimum Reason = "minimum"
	// ReasonInteractive: the forecast traffic.
	ReasonInteractive Reason = "interactive"
	// ReasonDeadline: with fewer a deadline would be missed.
	ReasonDeadline Reason = "deadline"
	// ReasonAtRisk: with fewer a deadline would be missed if the forecast is too good.
	ReasonAtRisk Reason = "at_risk"
	// ReasonStartBy: a job must start soon.
	ReasonStartBy Reason = "start_by"
	// ReasonLearning: the length of a job's lines is unknown, and it may be too large to wait.
	ReasonLearning Reason = "learning"
	// ReasonMaximum: more are needed than Pool.Max.
	ReasonMaximum Reason = "maximum"
	// ReasonPaid: a running replica is kept until the work is done.
	ReasonPaid Reason = "paid"
	// ReasonHolding: fewer would suffice, but not for long enough yet, or the rate of removals is
	// limited.
	ReasonHolding Reason = "holding"
	// ReasonQueue: the length of the queue.
	ReasonQueue Reason = "queue"
	// ReasonFixed: the number is a constant.
	ReasonFixed Reason = "fixed"
)

// Forecast is the expected end of a job.
type Forecast struct {
	Job     string
	Verdict Verdict // empty: it has no deadline
	// Finish is when the job will be done: with the planned replicas, or with all allowed replicas
	// if that is too late. Four of five jobs end between Earliest and Latest. A time is zero if it
	// is not within Config.Deadline.Horizon.
	Finish, Earliest, Latest time.Time
}

// Verdict says whether a job meets its deadline. It is shown to users.
type Verdict string

const (
	OK Verdict = "ok" // met
	// AtRisk: met if nothing goes worse than expected or, on engines of which only the rate of the
	// last minutes is known, if the rate turns out higher.
	AtRisk     Verdict = "at_risk"
	Infeasible Verdict = "infeasible" // missed even with every allowed replica
)
