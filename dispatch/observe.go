package dispatch

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
)

// ObserveState takes over what a runner says of itself. While it takes no lines, none start there.
// Models that it has not loaded are not sent there, as long as it has loaded others.
func (d *Dispatcher) ObserveState(name string, state runner.State) {
	u, s := d.settings.Load().runners[name], d.current.Load()
	if u == nil {
		return
	}
	changed := u.Says(time.Now(), state)
	if s == nil {
		return
	}
	if changed {
		s.fleet.Look()
	}
	if ev, counts := u.StopNow(time.Now()); counts {
		s.Inbox.Event(ev)
	}
}

// Observe passes a reading of a runner's metrics to the planner. If runner is empty, it is a
// reading of the gateway in front of the pools of a model, or of all pools if model is empty too.
// The reading must not be changed any more.
func (d *Dispatcher) Observe(runner, model string, r *flowcontrol.Reading) {
	s := d.current.Load()
	if u := d.settings.Load().runner(runner); u != nil && u.IsGateway() {
		var isNew bool
		if r, isNew = u.SeeEngine(time.Now(), runner, r); isNew && s != nil {
			s.fleet.Look()
		}
	}
	if s != nil {
		s.Inbox.Event(plan.Reading{Runner: runner, Model: model, Reading: r})
	}
}
