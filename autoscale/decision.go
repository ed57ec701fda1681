package autoscale

import "time"

// Decision is what a controller makes of a State.
type Decision struct {
	// Pools in the order of State.Pools.
	Pools []Wanted
	// Jobs that have a deadline, the earliest first.
	Jobs []Forecast
	// Wake is when to step again at the latest; an event that changes the work or the replicas is a
	// reason to step at once.
	Wake time.Time
}

// Wanted is what a pool should have.
type Wanted struct {
	Pool string
	// Replicas that should exist, starting ones included and draining ones not. Start what is
	// missing, all at once.
	Replicas int
	// Shown is Replicas and those that are draining: what to tell an autoscaler that removes a
	// replica as soon as the number falls. So the number does not fall before a replica is empty.
	Shown int
	// Reason is why it is not one less.
	Reason Reason
	// Drain lists the replicas that should go, the first to go first; there are as many as exist
	// beyond Replicas. Where somebody else owns the number of replicas, sending these no new lines
	// lets him see that they are not needed.
	Drain []string
	// GiveUp lists starting replicas that have taken too long to be waited for: end them, and start
	// others in their place.
	GiveUp []string
	// Closed says that batch lines are not to be sent to the pool at all.
	Closed bool
	// Terms is how the number came about.
	Terms Terms
}

// Terms explains a number of replicas. It is shown, never acted on.
type Terms struct {
	// Interactive is what the forecast traffic needs, Deadline what deadlines need in all; before
	// bounds, patience and rate limits.
	Interactive, Deadline int
	// Rate is the interactive requests a second expected until a replica asked for now would be
	// well ready, and Seasonal says that yesterday was the guide.
	Rate     float64
	Seasonal bool
	// Harvest is the work a replica is expected to do now, in milliseconds a second, and Share what
	// was achieved of what was predicted so far.
	Harvest, Share float64
	// ColdStart is how long a replica is expected to take from being asked for to being ready.
	ColdStart time.Duration
	// Binding is the deadline that asks for most; zero: none asks for any.
	Binding time.Time
	// LatestStart is when a replica must be asked for at the latest if none is now; zero: no need
	// is in sight.
	LatestStart time.Time
}

// Reason names the one thing that a number of replicas is due to. It is a metric label and is shown
// to users.
type Reason string

const (
	ReasonNone        Reason = ""            // nothing asks for replicas: the number is 0
	ReasonMinimum     Reason = "minimum"     // Pool.Min
	ReasonInteractive Reason = "interactive" // the traffic expected
	ReasonDeadline    Reason = "deadline"    // a deadline would be missed with less
	// a deadline might be, should the forecast prove optimistic
	ReasonAtRisk  Reason = "at_risk"
	ReasonStartBy Reason = "start_by" // a job was promised to begin
	// nobody knows yet how long a job's lines take, and it may be too long to wait any longer
	ReasonLearning Reason = "learning"
	ReasonMaximum  Reason = "maximum" // more are needed than Pool.Max
	// a batch replica that runs is kept until the work is done
	ReasonPaid Reason = "paid"
	// fewer would do, but not for long enough yet, or replicas leave only so fast
	ReasonHolding Reason = "holding"
	// the length of the queue, for policies that look at it
	ReasonQueue Reason = "queue"
	ReasonFixed Reason = "fixed" // the number is a constant
)

// Forecast is what becomes of a job.
type Forecast struct {
	Job     string
	Verdict Verdict
	// Finish is when it will be done as far as can be told: with the replicas planned, or with all
	// there may be if that is too late. Zero: not within Config.Horizon.
	Finish time.Time
}

// Verdict on a job's deadline. It is shown to users.
type Verdict string

const (
	OK         Verdict = "ok"         // will be met
	AtRisk     Verdict = "at_risk"    // will be met if nothing goes worse than expected
	Infeasible Verdict = "infeasible" // can't be met even with every replica allowed
)
