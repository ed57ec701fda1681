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
	text := scaleText(d)
	before := slices.Collect(strings.Lines(l.lastScale))
	l.lastScale = text
	for row := range strings.Lines(text) {
		if !slices.Contains(before, row) {
			l.write(now, strings.TrimSuffix(row, "\n"))
		}
	}
}

// scaleText has a row for each pool, and for each job whose deadline is in danger.
func scaleText(d autoscale.Decision) string {
	var text strings.Builder
	for _, p := range d.Pools {
		fmt.Fprintf(&text, "scale %s to %d", cmp.Or(p.Pool, "pool"), p.Replicas)
		if p.Reason != autoscale.ReasonNone {
			fmt.Fprintf(&text, " (%s)", p.Reason)
		}
		if len(p.Drain) > 0 {
			text.WriteString("; drain " + strings.Join(p.Drain, ", "))
		}
		if len(p.GiveUp) > 0 {
			text.WriteString("; give up " + strings.Join(p.GiveUp, ", "))
		}
		text.WriteByte('\n')
	}
	for _, j := range d.Jobs {
		if j.Verdict != autoscale.OK {
			fmt.Fprintf(&text, "job %s is %s\n", j.Job, j.Verdict)
		}
	}
	return text.String()
}

// scaled records the decision that is in force at the moment.
func (e *explainer) scaled(now time.Time, d autoscale.Decision) {
	if !now.After(e.at) {
		e.decision = autoscale.Decision{Pools: slices.Clone(d.Pools), Jobs: slices.Clone(d.Jobs)}
	}
	if now.Sub(e.at).Abs() <= explainWindow {
		e.eventLog.scaled(now, d)
	} else {
		e.lastScale = scaleText(d)
	}
}

// writeScaling writes why each pool has its number of replicas.
func (e *explainer) writeScaling(write func(format string, args ...any)) {
	for _, p := range e.decision.Pools {
		t := p.Terms
		write("replicas of %s: %d wanted (%s); %d for traffic of %.3g requests a second, "+
			"%d for traffic and deadlines", cmp.Or(p.Pool, "pool"), p.Replicas,
			cmp.Or(string(p.Reason), "no reason"), t.Interactive, t.Rate, t.Deadline)
		write("  a replica harvests %.4g ms of work a second, %.3g of what the cost model "+
			"predicts; a start takes %.0f s", t.Harvest, t.Share, t.ColdStart.Seconds())
		if !t.Binding.IsZero() {
			write("  the deadline at %.0f s needs the most replicas",
				t.Binding.Sub(epoch).Seconds())
		}
		if !t.LatestStart.IsZero() {
			write("  the next replica must be requested by %.0f s", t.LatestStart.Sub(
				epoch).Seconds())
		}
	}
	for i, j := range e.decision.Jobs {
		if i == maxExplainedJobs {
			write("and %d jobs more", len(e.decision.Jobs)-i)
			break
		}
		finish := "unknown"
		if !j.Finish.IsZero() {
			finish = fmt.Sprintf("at %.0f s", j.Finish.Sub(epoch).Seconds())
		}
		write("deadline of %s: %s, finish %s", j.Job, j.Verdict, finish)
	}
}
