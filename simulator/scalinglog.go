package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/internal/humanize"
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

// writeScaling writes why each pool has its number of replicas, and when jobs are predicted to end.
func (e *explainer) writeScaling() {
	for _, p := range e.decision.Pools {
		t := p.Terms
		e.say("\nReplicas of %s: %d wanted. %s\n", cmp.Or(p.Pool, "the pool"), p.Replicas,
			p.Reason.Sentence())
		e.say("Traffic of %.3g requests a second needs %d, with deadlines %d. A start takes %s.",
			t.Rate, t.Interactive, t.Deadline, humanize.Duration(t.ColdStart))
		if !t.Binding.IsZero() {
			e.say(" The deadline at %s needs the most replicas.", sinceStart(t.Binding))
		}
		if !t.LatestStart.IsZero() {
			e.say(" The next replica must be requested by %s.", sinceStart(t.LatestStart))
		}
		e.say("\n")
	}
	for i, j := range e.decision.Jobs {
		if i == maxExplainedJobs {
			e.say("And %s more.\n", humanize.Count(len(e.decision.Jobs)-i, "job"))
			break
		}
		verdict := map[autoscale.Verdict]string{autoscale.OK: "is met",
			autoscale.AtRisk: "is at risk", autoscale.Infeasible: "can't be met"}[j.Verdict]
		finish := "its end is unknown"
		if !j.Finish.IsZero() {
			finish = "it is expected to end at " + sinceStart(j.Finish)
		}
		e.say("The deadline of %s %s; %s.\n", j.Job, cmp.Or(verdict, string(j.Verdict)), finish)
	}
}
