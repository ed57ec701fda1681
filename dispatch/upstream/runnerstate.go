package upstream

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// State is what a runner says of itself (Model Runner API). NaN and zero: it does not say.
type State struct {
	Starting  bool // or stopping: it answers 503
	Unhealthy bool
	// Queue requests wait, of at most MaxQueue.
	Queue, MaxQueue float64
	KVUsed          float64 // share of the KV cache in use
	// NotLoaded lists models that the runner knows and has not loaded.
	NotLoaded []string
}

const (
	// fullKV is the share of the KV cache from which on engines preempt requests for new ones.
	fullKV = 0.95
	// stateHolds is the time for which a state counts if no newer one follows. A runner that no
	// longer answers is left to the breaker.
	stateHolds = 30 * time.Second
)

// stop returns why no line may start on a runner that serves these models.
func (s State) stop(models []string) plan.Reason {
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
