package simulator

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/simulator/engine"
)

// Outputs selects what a run with batch work reports beside its result. They change nothing in the
// run.
type Outputs struct {
	// Timeline asks for Result.Timeline.
	Timeline bool
	// Events gets a row for each decision of the planner; nil: none.
	Events io.Writer
	// Explain gets the reasons of the decisions around Moment, a time since the beginning; nil:
	// none.
	Explain io.Writer
	Moment  time.Duration
	// Terms asks for all terms of the policies, too.
	Terms bool
	// Recorder gets what a daemon's recording gets; nil: none.
	Recorder Recorder
}

// Recorder receives each event that is fed to the planner and each request that an engine has
// served.
type Recorder interface {
	Step(now time.Time, ev plan.Event, did plan.Actions)
	Served(now time.Time, s ServedRequest)
}

// ServedRequest is a request as its engine measured it.
type ServedRequest struct {
	Runner string
	Batch  bool          // a batch line
	TTFT   time.Duration // from its arrival at the engine to its first token
	TPOT   time.Duration // mean of the further tokens; 0: there are none
}

// observers receive the decisions of a run.
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
		all.explain = newExplainer(log, w)
	}
	return all
}

// watch replaces the planner whose decisions are observed.
func (w observers) watch(planner *plan.Planner) {
	if w.events != nil {
		w.events.planner = planner
	}
	if w.explain != nil {
		w.explain.planner = planner
	}
}

func (w observers) before(now time.Time) { w.explain.before(now) }

func (w observers) step(now time.Time, ev plan.Event, actions plan.Actions) {
	w.events.step(now, ev, actions)
	w.explain.step(now, ev, actions)
	if w.recorder != nil {
		w.recorder.Step(now, ev, actions)
	}
}

// served passes a request on that an engine has finished.
func (w observers) served(now time.Time, req *request, c engine.Completion) {
	if w.recorder == nil {
		return
	}
	s := ServedRequest{Runner: req.replica.name, Batch: req.line != nil,
		TTFT: c.FirstToken.Sub(req.arrived)}
	if !req.sent.IsZero() {
		s.TTFT = c.FirstToken.Sub(req.sent)
	}
	if c.Output > 1 {
		s.TPOT = c.Finished.Sub(c.FirstToken) / time.Duration(c.Output-1)
	}
	w.recorder.Served(now, s)
}

// err returns the first error of writing.
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
