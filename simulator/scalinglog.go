package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// scaled passes an autoscaler's decision to the observers.
func (w observers) scaled(now time.Time, d autoscale.Decision) {
	if w.events != nil {
		w.events.scaled(now, d)
	}
	if w.explain != nil {
		w.explain.scaled(now, d)
	}
}

// scaled writes numbers of replicas and verdicts whenever they change.
func (l *eventLog) scaled(now time.Time, d autoscale.Decision) {
	told := scaleText(d)
	before := slices.Collect(strings.Lines(l.scale))
	l.scale = told
	for line := range strings.Lines(told) {
		if !slices.Contains(before, line) {
			l.line(now, strings.TrimSuffix(line, "\n"))
		}
	}
}

// scaleText has a row for each pool, and for each job whose deadline is in danger.
func scaleText(d autoscale.Decision) string {
	var told strings.Builder
	for _, p := range d.Pools {
		fmt.Fprintf(&told, "scale %s to %d", cmp.Or(p.Pool, "pool"), p.Replicas)
		if p.Reason != autoscale.ReasonNone {
			fmt.Fprintf(&told, " (%s)", p.Reason)
		}
		if len(p.Drain) > 0 {
			told.WriteString("; drain " + strings.Join(p.Drain, ", "))
		}
		if len(p.GiveUp) > 0 {
			told.WriteString("; give up " + strings.Join(p.GiveUp, ", "))
		}
		told.WriteByte('\n')
	}
	for _, j := range d.Jobs {
		if j.Verdict != autoscale.OK {
			fmt.Fprintf(&told, "job %s is %s\n", j.Job, j.Verdict)
		}
	}
	return told.String()
}

// scaled records the decision that is in force at the moment.
func (e *explainer) scaled(now time.Time, d autoscale.Decision) {
	if !now.After(e.at) {
		e.last = autoscale.Decision{Pools: slices.Clone(d.Pools), Jobs: slices.Clone(d.Jobs)}
	}
	if now.Sub(e.at).Abs() <= explainWindow {
		e.eventLog.scaled(now, d)
	} else {
		e.scale = scaleText(d)
	}
}

// writeScaling writes why each pool has its number of replicas.
func (e *explainer) writeScaling(say func(format string, args ...any)) {
	for _, p := range e.last.Pools {
		t := p.Terms
		say(
			"replicas of %s: %d wanted (%s); %d for traffic of %.3g requests a second, %d for that and deadlines", cmp.Or(p.Pool, "pool"),
			p.Replicas, cmp.Or(string(p.Reason), "nothing asks for any"), t.Interactive, t.Rate,
			t.Deadline)
		say(
			"  a replica harvests %.4g ms of work a second, %.3g of what the law says; a start takes %.0f s", t.Harvest, t.Share, t.ColdStart.Seconds())
		if !t.Binding.IsZero() {
			say("  the deadline at %.0f s asks for most", t.Binding.Sub(epoch).Seconds())
		}
		if !t.LatestStart.IsZero() {
			say("  the next replica must be asked for at %.0f s at the latest", t.LatestStart.Sub(
				epoch).Seconds())
		}
	}
	for i, j := range e.last.Jobs {
		if i == maxExplainedJobs {
			say("and %d jobs more", len(e.last.Jobs)-i)
			break
		}
		finish := "not in sight"
		if !j.Finish.IsZero() {
			finish = fmt.Sprintf("at %.0f s", j.Finish.Sub(epoch).Seconds())
		}
		say("deadline of %s: %s, finish %s", j.Job, j.Verdict, finish)
	}
}
