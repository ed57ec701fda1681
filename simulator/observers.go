package simulator

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
)

// Watch is what is told of a run with batch work beyond its figures. Watching
// changes nothing in the run.
type Outputs struct {
	// Tape asks for Result.Tape.
	Timeline bool
	// Events gets a line for each decision of the planner; nil: nobody reads them.
	Events io.Writer
	// Explain gets why the decisions about Moment fell, where that is in the run; nil: nobody asks.
	Explain io.Writer
	Moment  time.Duration
	// Recorder is told what a daemon's recording is told; nil: nobody records.
	Recorder Recorder
}

// Recorder hears of each event that the planner is told, and of each request that an engine has
// served.
type Recorder interface {
	Step(now time.Time, ev plan.Event, did plan.Actions)
	Served(now time.Time, s ServedRequest)
}

// Served is a request as its engine saw it.
type ServedRequest struct {
	Runner string
	Batch  bool          // a line of ours
	TTFT   time.Duration // from its arrival there to its first token
	TPOT   time.Duration // mean of the further ones; 0: there are none
}

// watchers are those who want to be told of a run's decisions.
type observers struct {
	events   *eventLog
	explain  *explainer
	recorder Recorder
}

func newObservers(w Outputs, planner *plan.Planner, chunk int) observers {
	all := observers{recorder: w.Recorder}
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

func (w observers) before(now time.Time) { w.explain.before(now) }

func (w observers) step(now time.Time, ev plan.Event, actions plan.Actions) {
	w.events.step(now, ev, actions)
	w.explain.step(now, ev, actions)
	if w.recorder != nil {
		w.recorder.Step(now, ev, actions)
	}
}

// served tells of a request that an engine has finished.
func (w observers) served(now time.Time, req *request, c engine.Completion) {
	if w.recorder == nil {
		return
	}
	s := ServedRequest{Runner: req.replica.name, Batch: req.line != nil, TTFT: c.FirstToken.Sub(req.arrived)}
	if !req.sent.IsZero() {
		s.TTFT = c.FirstToken.Sub(req.sent)
	}
	if c.Output > 1 {
		s.TPOT = c.Finished.Sub(c.FirstToken) / time.Duration(c.Output-1)
	}
	w.recorder.Served(now, s)
}

// fault is what kept somebody from being told.
func (w observers) err() error {
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
