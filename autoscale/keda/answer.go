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
	a := answer{replicas: p.Reported, active: p.Active()}
	if r.role == dispatchers {
		a = dispatchersFor(p)
	}
	// The maximum of runners is the decision's, which has it from the declaration. A number that
	// is cut here would have replicas removed before their lines in flight are answered.
	if r.role == dispatchers && r.Max != nil {
		a.replicas = min(a.replicas, *r.Max)
	}
	if r.Min != nil {
		a.replicas = max(a.replicas, *r.Min)
		a.active = a.active || *r.Min > 0
	}
	return a, nil
}

// fresh returns an error if a snapshot is too old for an answer. Processes exchange snapshots, and
// one from the future is as far from the truth.
func fresh(now time.Time, s *autoscale.Snapshot, staleAfter time.Duration) error {
	switch age := now.Sub(s.At); {
	case age > staleAfter:
		return status.Errorf(codes.Unavailable, "the last decision is %v old, and the replicas "+
			"stay as they are; see the daemon's log", age.Truncate(time.Minute))
	case age < -staleAfter:
		return status.Errorf(codes.Unavailable, "the last decision is dated %v ahead; "+
			"synchronize the clocks of the daemons", (-age).Truncate(time.Minute))
	}
	return nil
}

// dispatchersFor returns how many dispatchers a pool needs: one, since one sends lines to any
// number of runners. Runners come first: while none starts, a dispatcher has nothing to do. One
// starts within seconds, a runner does not.
func dispatchersFor(p *autoscale.PoolSnapshot) answer {
	if p.InFlight > 0 || p.Lines > 0 && p.Ready+p.Starting > 0 {
		return answer{1, true}
	}
	return answer{}
}
