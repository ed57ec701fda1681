package upstream

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/runner"
)

const (
	// fullKV is the share of the KV cache from which on engines preempt requests for new ones.
	fullKV = 0.95
	// stateHolds is the time for which a state counts if no newer one follows. A runner that no
	// longer answers is left to the breaker.
	stateHolds = 30 * time.Second
)

// stopReason returns why no line may start on a runner in this state that serves these models.
func stopReason(s runner.State, models []string) plan.Reason {
	loaded := func(m string) bool { return !slices.Contains(s.NotLoaded, m) }
	switch {
	case s.Starting:
		return plan.Starting
	case s.Unhealthy:
		return plan.Unhealthy
	case len(models) > 0 && !slices.ContainsFunc(models, loaded):
		return plan.ModelNotLoaded
	case s.MaxQueue > 0 && s.Queue >= s.MaxQueue:
		return plan.QueueFull
	case s.KVUsed >= fullKV:
		return plan.KVFull
	}
	return plan.Flowing
}
