package simulator

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// eventLog writes a row for each event of the planner that has a consequence, with the consequence,
// and the allowances whenever they change:
//
//	12.345  finished night/17 on replica-0: succeeded 200, 707 in, 5 out → record; start night/44
//	        on replica-0
//	12.345  allowance 34 (growing): replica-0 17 growing, replica-1 17 growing
//
// A line of a job is named by its number, from 0. Observations without a consequence are left out,
// and so is the number of prompt tokens that may wait, which changes with every token.
type eventLog struct {
	out            io.Writer
	planner        *plan.Planner
	chunk          int // lines
	lastAllowances string
	lastScale      string
	err            error
}

func (l *eventLog) step(now time.Time, ev plan.Event, actions plan.Actions) {
	if l == nil || l.err != nil {
		return
	}
	done := l.consequences(ev, actions)
	if text := l.event(ev); done != "" || !isObservation(ev) {
		l.write(now, text+done)
	}
	granted := allowances(l.planner.Pools())
	if granted != l.lastAllowances {
		l.lastAllowances = granted
		for text := range strings.Lines(granted) {
			l.write(now, "allowance "+strings.TrimSuffix(text, "\n"))
		}
	}
}

func (l *eventLog) write(now time.Time, text string) {
	if l.err == nil {
		_, l.err = fmt.Fprintf(l.out, "%10.3f  %s\n", now.Sub(epoch).Seconds(), text)
	}
}

// isObservation reports whether an event only informs the planner of the state of things.
func isObservation(ev plan.Event) bool {
	switch ev.(type) {
	case *plan.FirstToken, plan.TokenGaps, plan.Reading, plan.Tick, plan.RequestSpoke,
		plan.RequestsDecoded:
		return true
	}
	return false
}

func (l *eventLog) event(ev plan.Event) string {
	switch ev := ev.(type) {
	case plan.RunnerUp:
		return "runner " + ev.Runner + " is up"
	case plan.RunnerGone:
		return "runner " + ev.Runner + " is gone"
	case plan.BatchPut:
		text := "batch " + ev.Batch.ID
		for _, m := range ev.Batch.Models {
			text += fmt.Sprintf(": %d lines of %s", m.Lines, m.Model)
		}
		if !ev.Batch.Deadline.IsZero() {
			text += fmt.Sprintf(", due at %.0f s", ev.Batch.Deadline.Sub(epoch).Seconds())
		}
		return text
	case plan.Feasibility:
		if ev.Infeasible {
			return "batch " + ev.Batch + " is infeasible"
		}
		return "batch " + ev.Batch + " is feasible again"
	case plan.BatchGone:
		return "batch " + ev.Batch + " has ended"
	case plan.Loaded:
		return fmt.Sprintf("loaded %d lines of %s", len(ev.Lines), ev.Key.Batch)
	case *plan.Finished:
		text := fmt.Sprintf("finished %s on %s: %s", l.name(ev.Start), ev.Start.Runner, ev.Outcome)
		if ev.Status != 0 {
			text += fmt.Sprintf(" %d", ev.Status)
		}
		if ev.OutputTokens > 0 {
			text += fmt.Sprintf(", %d in, %d out", ev.InputTokens, ev.OutputTokens)
		}
		return text
	case *plan.FirstToken:
		return fmt.Sprintf("first token of %s on %s after %d ms", l.name(ev.Start), ev.Start.Runner,
			ev.Latency.Milliseconds())
	case plan.TokenGaps:
		return fmt.Sprintf("tokens of %s every %.1f ms", ev.Runner,
			float64(ev.Time)/float64(max(1, ev.Gaps))/float64(time.Millisecond))
	case plan.Reading:
		return "reading of " + cmp.Or(ev.Runner, "the gateway")
	case plan.Tick:
		return "timer"
	case plan.RequestCame:
		return fmt.Sprintf("request %d of %s, %s", ev.ID, ev.Flow.UseCase, ev.Flow.Class)
	case plan.RequestLeft:
		return fmt.Sprintf("request %d has left", ev.ID)
	case *plan.RequestEnded:
		return fmt.Sprintf("request %d ended: %s, %d out", ev.ID, ev.Outcome, ev.OutputTokens)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", ev), "plan.")
}

var verdicts = map[plan.Verdict]string{plan.Record: "record", plan.Retry: "again",
	plan.Return: "return"}

func (l *eventLog) consequences(ev plan.Event, actions plan.Actions) string {
	text := ""
	if _, ended := ev.(*plan.Finished); ended {
		text = " → " + verdicts[actions.Verdict]
	}
	add := func(verb string, lines []plan.Start) {
		for _, s := range lines {
			text += fmt.Sprintf("; %s %s on %s", verb, l.name(s), s.Runner)
		}
	}
	add("start", actions.Start)
	add("evict", actions.Evict)
	for _, a := range actions.Admit {
		text += fmt.Sprintf("; admit request %d on %s", a.ID, a.Runner)
	}
	for _, r := range actions.Refuse {
		text += fmt.Sprintf("; refuse request %d (%s)", r.ID, r.Why)
	}
	for _, c := range actions.Claim {
		text += "; claim of " + c.Key.Batch
	}
	return text
}

func (l *eventLog) name(s plan.Start) string {
	return fmt.Sprintf("%s/%d", s.Key.Batch, s.Chunk*l.chunk+s.Slot)
}

// allowances writes each pool's allowance in a row.
func allowances(pools []plan.PoolStatus) string {
	var text strings.Builder
	for _, p := range pools {
		fmt.Fprintf(&text, "%d%s", p.Limit, parenthesized(p.Granted))
		for i, r := range p.Runners {
			if i == 0 {
				text.WriteByte(':')
			} else {
				text.WriteByte(',')
			}
			fmt.Fprintf(&text, " %s %d%s", r.ID, r.Limit, parenthesized(r.Granted))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

func parenthesized(reason flowcontrol.Reason) string {
	if reason == flowcontrol.ReasonNone {
		return ""
	}
	return fmt.Sprintf(" (%s)", reason)
}
