package dispatch

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// RunnerState is what a runner says of itself (Model Runner API). NaN and zero: it does not say.
type RunnerState struct {
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
	// stateHolds is how long a state counts if no newer one follows. A runner that no longer
	// answers is left to the breaker.
	stateHolds = 30 * time.Second
)

// stop returns why no line may start on a runner that serves these models.
func (s RunnerState) stop(models []string) plan.Reason {
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

// ObserveState takes over what a runner says of itself. While it takes no lines, none start there.
// Models that it has not loaded are not sent there, as long as it has loaded others.
func (d *Dispatcher) ObserveState(name string, state RunnerState) {
	u, s := d.settings.Load().runners[name], d.current.Load()
	if u == nil {
		return
	}
	changed := u.says(time.Now(), state)
	if s == nil {
		return
	}
	if changed {
		s.lease.leading.look()
	}
	if ev, counts := u.stopNow(time.Now()); counts {
		s.inbox.Event(ev)
	}
}

// says records what the runner says of itself. It reports whether other models are loaded.
func (u *runner) says(now time.Time, state RunnerState) (changed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	changed = !slices.Equal(u.notLoaded, state.NotLoaded)
	u.notLoaded = slices.Clone(state.NotLoaded)
	u.state, u.stateUntil = state, now.Add(stateHolds)
	return changed
}

// stopNow returns what the runner said last as an event; false: it has not said anything lately.
// The planner forgets it for runners that it does not plan with, such as those of another leader.
func (u *runner) stopNow(now time.Time) (ev plan.RunnerState, counts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return plan.RunnerState{Runner: u.name, Stop: u.state.stop(u.models), Until: u.stateUntil},
		u.stateUntil.After(now)
}

// loaded returns those of the models that the runner has loaded, as far as it says; all if it has
// loaded none of them: then it is stopped and keeps its pool.
func (u *runner) loaded(models []string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.notLoaded) == 0 {
		return models
	}
	some := slices.DeleteFunc(slices.Clone(models), func(m string) bool {
		return slices.Contains(u.notLoaded, m)
	})
	if len(some) == 0 {
		return models
	}
	return some
}
