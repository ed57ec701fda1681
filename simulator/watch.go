package simulator

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Watch is what is told of a run with batch work beyond its figures. Watching
// changes nothing in the run.
type Watch struct {
	// Tape asks for Result.Tape.
	Tape bool
	// Events gets a line for each decision of the planner; nil: nobody reads them.
	Events io.Writer
	// Explain gets why the decisions about Moment fell, where that is in the run; nil: nobody asks.
	Explain io.Writer
	Moment  time.Duration
}

// watchers are those who want to be told of a run's decisions.
type watchers struct {
	events  *eventLog
	explain *explainer
}

func newWatchers(w Watch, planner *plan.Planner, chunk int) watchers {
	var all watchers
	log := eventLog{planner: planner, chunk: chunk}
	if w.Events != nil {
		log.out = w.Events
		events := log
		all.events = &events
	}
	if w.Explain != nil {
		log.out = w.Explain
		all.explain = &explainer{eventLog: log, at: epoch.Add(w.Moment)}
	}
	return all
}

func (w watchers) before(now time.Time) { w.explain.before(now) }

func (w watchers) see(now time.Time, ev plan.Event, actions plan.Actions) {
	w.events.see(now, ev, actions)
	w.explain.see(now, ev, actions)
}

// fault is what kept somebody from being told.
func (w watchers) fault() error {
	var faults []error
	if w.events != nil {
		faults = append(faults, w.events.err)
	}
	if w.explain != nil {
		faults = append(faults, w.explain.err)
	}
	i := slices.IndexFunc(faults, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("write what happened: %w", faults[i])
}
