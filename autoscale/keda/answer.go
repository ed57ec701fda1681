package keda

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale"
)

// answer is what a ScaledObject gets: a number of replicas, and whether there must be any.
type answer struct {
	replicas int
	active   bool
}

// answerFor returns the answer from the last decision about a pool, nil if there is none.
func answerFor(r reference, p *autoscale.PoolSnapshot) (answer, error) {
	if p == nil {
		return answer{}, status.Errorf(codes.Unavailable, "the replicas of pool %s are not known; "+
			"see the daemon's log and its metric tidefill_scaling_unknown", r.pool)
	}
	// The maximum is the decision's, which has it from the declaration. A number that is cut here
	// would have replicas removed before their lines in flight are answered.
	return atLeast(r.Min, answer{replicas: p.Reported, active: p.Active()}), nil
}

// atLeast returns an answer within the minimum of a ScaledObject; nil: it has none.
func atLeast(minimum *int, a answer) answer {
	if minimum != nil {
		a.replicas = max(a.replicas, *minimum)
		a.active = a.active || *minimum > 0
	}
	return a
}

// Dispatching is what the store says of the work of dispatchers.
type Dispatching struct {
	// Batches counts those that need a dispatcher: to be checked, for their lines, or to end.
	Batches int
	// Dispatchers counts the processes that dispatch now.
	Dispatchers int
}

// dispatchersFor returns the number of dispatchers that a pool needs: one, since one sends lines to
// any number of runners. A batch needs it from its creation on: nothing else checks the batch, and
// who does not dispatch does not decide about runners. For the same reason one stays until the last
// decision has given back the replicas beyond the minimum. known says why the work is not known,
// decided why p is nil.
func dispatchersFor(
	r reference, work Dispatching, known error, p *autoscale.PoolSnapshot, decided error,
) (answer, error) {
	needed := known == nil && work.Batches > 0
	if p != nil {
		needed = needed || p.InFlight > 0 || p.Reported > p.Min
	}
	switch {
	case needed:
		a := answer{1, true}
		if r.Max != nil {
			a.replicas = min(a.replicas, *r.Max)
		}
		return atLeast(r.Min, a), nil
	case known != nil:
		return answer{}, status.Errorf(codes.Unavailable, "whether pool %s needs a dispatcher is "+
			"not known: %v", r.pool, known)
	case p == nil && work.Dispatchers > 0: // lines may be in flight
		return answer{}, decided
	}
	return atLeast(r.Min, answer{}), nil
}

// fresh returns an error if a snapshot is too old for an answer. Processes exchange snapshots, and
// one from the future is as far from the truth.
func fresh(now time.Time, s *autoscale.Snapshot, staleAfter time.Duration) error {
	switch age := now.Sub(s.At); {
	case age > staleAfter:
		return status.Errorf(codes.Unavailable, "the last decision is %v old, and the replicas "+
			"stay as they are; see the daemon's log", roughly(age))
	case age < -staleAfter:
		return status.Errorf(codes.Unavailable, "the last decision is dated %v ahead; "+
			"synchronize the clocks of the daemons", roughly(-age))
	}
	return nil
}

// roughly returns an age in whole minutes, or in seconds below one: each text is logged anew.
func roughly(age time.Duration) time.Duration {
	if age < time.Minute {
		return age.Truncate(time.Second)
	}
	return age.Truncate(time.Minute)
}
