package simulator

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// explainer writes why the planner decided as it did around a moment: the state at that moment, and
// every event of the seconds around it.
type explainer struct {
	eventLog
	at           time.Time
	stateWritten bool
	decision     autoscale.Decision // the autoscaler's decision in force at the moment
}

// explainWindow is the time before and after the moment for which events are written.
const explainWindow = 5 * time.Second

// before is called before an event is fed to the planner.
func (e *explainer) before(now time.Time) {
	if e == nil || e.stateWritten || now.Before(e.at) {
		return
	}
	e.stateWritten = true
	e.writeState(e.at)
}

func (e *explainer) step(now time.Time, ev plan.Event, actions plan.Actions) {
	if e != nil && now.Sub(e.at).Abs() <= explainWindow {
		e.eventLog.step(now, ev, actions)
	}
}

// writeState writes the state of the planner's pools, runners and jobs.
func (e *explainer) writeState(now time.Time) {
	write := func(format string, args ...any) {
		if e.err == nil {
			_, e.err = fmt.Fprintf(e.out, format+"\n", args...)
		}
	}
	terms := e.planner.Terms(now)
	write("--- state at %.3f s", now.Sub(epoch).Seconds())
	for i, p := range e.planner.Pools() {
		write("pool %s: %d lines in flight, %d allowed%s; limited by: %s",
			strings.Join(p.Models, ", "), p.InFlight, p.Limit,
			parenthesized(p.Granted), cmp.Or(string(p.Reason), "nothing"))
		for _, r := range p.Runners {
			prompt := "no limit"
			if r.Prompt < flowcontrol.NoLimit {
				prompt = fmt.Sprint(r.Prompt)
			}
			open := ""
			if r.Open {
				open = ", its breaker is open"
			}
			write("  %s: %d lines of %d%s; %d prompt tokens to compute of %s%s", r.ID, r.InFlight,
				r.Limit, parenthesized(r.Granted), r.Prefilling, prompt, open)
		}
		if terms[i] == nil {
			write("  its policy does not explain itself")
		}
		for _, t := range terms[i] {
			write("  %s %s = %.6g %s", cmp.Or(t.Runner, "pool"), t.Name, t.Value, t.Unit)
		}
	}
	demand := e.planner.Demand()
	for i, d := range demand {
		if i == maxExplainedJobs {
			write("and %d jobs more", len(demand)-i)
			break
		}
		due := "no deadline"
		if !d.Deadline.IsZero() {
			due = fmt.Sprintf("due at %.0f s", d.Deadline.Sub(epoch).Seconds())
		}
		write("job %s: %d lines left, %.0f s of an engine; %s", d.Key.Batch, d.Lines, d.Work/1000,
			due)
	}
	e.writeScaling(write)
	write("--- events")
}

// maxExplainedJobs is the number of jobs that are written.
const maxExplainedJobs = 20
