package simulator

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/humanize"
)

// explainer writes why the planner decided as it did around a moment: in sentences, the state at
// that moment, and then every event of the seconds around it.
type explainer struct {
	eventLog
	to           io.Writer
	earlier      bytes.Buffer // events before the state
	terms        bool         // all terms of the policies are written, too
	at           time.Time
	stateWritten bool
	decision     autoscale.Decision // the autoscaler's decision in force at the moment
}

// newExplainer returns the explainer of a moment. The log's output is set.
func newExplainer(log eventLog, w Outputs) *explainer {
	e := &explainer{eventLog: log, to: w.Explain, terms: w.Terms, at: epoch.Add(w.Moment)}
	e.out = &e.earlier
	return e
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
	e.say("\nWhat happened in the %s before and after, by seconds from the beginning:\n",
		explainWindow)
	if e.err == nil {
		_, e.err = e.earlier.WriteTo(e.to)
	}
	e.out = e.to
}

func (e *explainer) step(now time.Time, ev plan.Event, actions plan.Actions) {
	if e != nil && now.Sub(e.at).Abs() <= explainWindow {
		e.eventLog.step(now, ev, actions)
	}
}

// say writes a text of the state.
func (e *explainer) say(format string, args ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.to, format, args...)
	}
}

// sinceStart writes a time as that from the beginning of the run.
func sinceStart(at time.Time) string { return humanize.Duration(max(0, at.Sub(epoch))) }

// writeState writes the state of the planner's pools, runners and jobs.
func (e *explainer) writeState(now time.Time) {
	terms := e.planner.Terms(now)
	for i, p := range e.planner.Pools() {
		e.say("%s into the run, the pool %s carries %s, and may carry %d.\n", sinceStart(now),
			strings.Join(p.Models, ", "), humanize.Count(p.InFlight, "batch line"), p.Limit)
		if p.Reason == plan.Flowing {
			e.say("%s\n", plan.Explain("flowing").Meaning)
		} else {
			e.say("%s\n", p.Reason.Text())
		}
		if granted := plan.Reason(p.Granted); granted != p.Reason && granted != "" {
			e.say("The allowance is limited by %s\n", granted.Text())
		}
		of := poolTerms(terms[i])
		e.say("%s\n", of.usersFeel())
		e.writeRunners(p, of)
		if e.terms {
			e.writeTerms(terms[i])
		}
	}
	e.writeJobs(now)
	e.writeScaling()
}

// writeRunners writes a table of a pool's runners, and what their reasons mean.
func (e *explainer) writeRunners(p plan.PoolStatus, terms poolTerms) {
	if len(p.Runners) == 0 || e.err != nil {
		return
	}
	w := tabwriter.NewWriter(e.to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nRUNNER\tLINES\tALLOWED\tPER TOKEN\tINTERACTIVE\tPROMPT TOKENS\tLIMITED BY")
	said := []plan.Reason{p.Reason, plan.Reason(p.Granted), "", "none"}
	var reasons []string
	for _, r := range p.Runners {
		why := plan.Reason(r.Granted)
		if r.Open {
			why = "unreachable"
			if r.Failing {
				why = plan.Failing
			}
		}
		if r.InFlight == 0 && p.Reason == plan.NothingReady && !r.Open {
			why = "" // nothing waits for it
		}
		prompts := fmt.Sprint(r.Prefilling)
		if r.Prompt < flowcontrol.NoLimit {
			prompts += fmt.Sprintf(" of %d", r.Prompt)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\n", r.ID, r.InFlight, r.Limit,
			terms.text(r.ID, flowcontrol.TermTokenTime, "%.1f ms"),
			terms.text(r.ID, flowcontrol.TermInteractiveRunning, "%.0f")+
				strings.TrimSuffix(" + "+terms.text(r.ID, flowcontrol.TermInteractiveWaiting,
					"%.0f waiting"), " + -"),
			prompts, cmp.Or(string(why), "-"))
		if !slices.Contains(said, why) {
			said = append(said, why)
			reasons = append(reasons, why.Text())
		}
	}
	e.err = w.Flush()
	for _, text := range reasons {
		e.say("%s\n", text)
	}
}

// poolTerms are the terms of a pool's policy by runner and name. The pool's own have no runner.
type poolTerms []flowcontrol.Term

// value returns a term; 0 if the policy has none.
func (t poolTerms) value(runner, name string) float64 {
	i := slices.IndexFunc(t, func(t flowcontrol.Term) bool {
		return t.Runner == runner && t.Name == name
	})
	if i < 0 {
		return 0
	}
	return t[i].Value
}

// text formats a term; a dash if the policy has none.
func (t poolTerms) text(runner, name, format string) string {
	if slices.ContainsFunc(t, func(t flowcontrol.Term) bool {
		return t.Runner == runner && t.Name == name
	}) {
		return fmt.Sprintf(format, t.value(runner, name))
	}
	return "-"
}

// usersFeel says how long tokens of interactive users take and may take.
func (t poolTerms) usersFeel() string {
	sum, n := 0.0, 0
	for _, term := range t {
		if term.Runner != "" && term.Name == flowcontrol.TermTokenTime && term.Value > 0 {
			sum, n = sum+term.Value, n+1
		}
	}
	if n == 0 {
		return "The policy does not know how long tokens take."
	}
	text := fmt.Sprintf("Users feel %.1f ms per token", sum/float64(n))
	for _, term := range []struct{ name, format string }{
		{flowcontrol.TermTarget, ", target %.1f ms"},
		{flowcontrol.TermObjective, ", objective %.1f ms"},
		{flowcontrol.TermAlone, ", %.1f ms without batch work"}} {
		if v := t.value("", term.name); v > 0 {
			text += fmt.Sprintf(term.format, v)
		}
	}
	if v := t.value("", flowcontrol.TermSlowdown); v > 0 {
		text += fmt.Sprintf("; first tokens take %.2f times as long as without", v)
		if allowed := t.value("", flowcontrol.TermSlowdownAllowed); allowed > 0 {
			text += fmt.Sprintf(", %.2f allowed", allowed)
		}
	}
	return text + "."
}

func (e *explainer) writeTerms(terms []flowcontrol.Term) {
	e.say("\nTerms of the policy:\n")
	if terms == nil {
		e.say("  it does not explain itself\n")
	}
	for _, t := range terms {
		e.say("  %s %s = %.6g %s\n", cmp.Or(t.Runner, "pool"), t.Name, t.Value, t.Unit)
	}
}

const (
	// maxExplainedJobs is the number of jobs that are written.
	maxExplainedJobs = 20
	// maxCountedLines is more than any batch has. A job with more is a backlog without end.
	maxCountedLines = 100_000_000
)

// writeJobs writes what jobs have left, when they are due, and why their lines wait.
func (e *explainer) writeJobs(now time.Time) {
	demand := e.planner.Demand()
	for i, d := range demand {
		if i == 0 {
			e.say("\n")
		}
		if i == maxExplainedJobs {
			e.say("And %s more.\n", humanize.Count(len(demand)-i, "job"))
			break
		}
		due := "without a deadline"
		if !d.Deadline.IsZero() {
			due = "due at " + sinceStart(d.Deadline)
		}
		left := "no end"
		if d.Lines <= maxCountedLines {
			left = humanize.Count(d.Lines, "line") + " left, " + humanize.Duration(
				time.Duration(d.Work*float64(time.Millisecond))) + " of an engine"
		}
		e.say("Job %s has %s, %s.", d.Key.Batch, left, due)
		if s, known := e.planner.Status(now, d.Key.Batch); known && s.Waiting != plan.Flowing {
			e.say(" It waits: %s", s.Waiting.Text())
		}
		e.say("\n")
	}
}
