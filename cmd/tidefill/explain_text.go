package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// explainDaemon prints what concerns all pools: why there is none, and sources without readings.
// scaled is the number of pools whose runners come and go.
func explainDaemon(w io.Writer, list client.PoolList, scaled int) {
	for _, why := range list.Waiting {
		printf(w, "Not ready: %s.\n", why)
	}
	for _, problem := range list.Problems {
		printf(w, "Degraded: %s\n", sentence(problem))
	}
	switch {
	case list.StandsBy && len(list.Data) == 0:
		fmt.Fprintln(w, "This process stands by: another one leads the pools, and has not "+
			"published them yet.")
	case len(list.Data) == 0 && scaled > 0:
		fmt.Fprintln(w, "No runner is ready now.")
	case len(list.Data) == 0 && len(list.Problems) > 0:
		fmt.Fprintln(w, "No pool is known.")
	case len(list.Data) == 0:
		fmt.Fprintln(w, "No pool yet: no upstream has listed its models. The log says what they "+
			"answer.")
	}
	for _, d := range list.Degraded {
		since := time.Duration((list.Time - d.Since) * float64(time.Second))
		printf(w, "Degraded: %s of %s: no reading for %s (%s). %s\n", d.Source, d.Target,
			humanize.Duration(since), d.State, d.Meaning)
	}
}

// sentence returns a text with a full stop.
func sentence(text string) string {
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// explainPool prints why a pool starts or starts no lines.
func explainPool(w io.Writer, p *client.Pool, list client.PoolList) {
	d := &p.Decision
	printf(w, "%s  policy %s, %s\n", poolArgument(p.Name), p.Policy,
		humanize.Count(len(d.Runners), "runner"))
	row := func(name, format string, args ...any) {
		printf(w, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	if p.Name != strings.Join(p.Models, ",") {
		row("models", "%s", strings.Join(p.Models, ", "))
	}
	if p.NotLed != "" {
		row("led by", "nobody: %s published this %s", p.Node, ago(&p.Age))
		row("limited by", "%s", p.NotLed)
		fmt.Fprintln(w)
		return
	}
	if p.Age > 0 {
		row("led by", "%s, which published this %s", p.Node, ago(&p.Age))
	}
	row("protected", "%s", p.Protection)
	row("users feel", "%s", usersFeel(d))
	if text := firstTokens(d); text != "" {
		row("", "%s", text)
	}
	if g := d.Gateway; g != nil && g.FirstTokens > 0 {
		row("late", "%.2f %% of first tokens, %.2f %% of answers, of %s requests; read %s",
			100*g.LateFirstTokens/g.FirstTokens, 100*g.LateAnswers/max(g.Answers, 1),
			humanize.Thousands(int64(g.FirstTokens)), ago(g.Age))
	}
	row("read", "%s", whatWasRead(d))
	if text := engineLoad(d); text != "" {
		row("engines", "%s", text)
	}
	row("lines", "%d in flight, %d allowed%s", d.InFlight, d.Allowance, decided(d, list.Time))
	if text := refusals(d); text != "" {
		row("", "%s", text)
	}
	row("limited by", "%s", limitedBy(d, list.Reasons))
	if f := p.Fallback; f != nil {
		row("fallback", "%s", fallbackText(f))
	}
	explainRequests(w, p.Requests, list.Reasons, row)
	for _, f := range p.Failures {
		name := "failed"
		if f.Failing {
			name = "FAILING"
		}
		row(name, "%s: %s", humanize.Printable(f.Runner), humanize.Printable(f.Text))
	}
	for _, warning := range p.Warnings {
		row("warning", "%s: %s", warning.Code, warning.Text)
	}
	if len(d.Runners) > 0 {
		fmt.Fprintln(w)
		runnerTable(w, d)
		explainRunnerReasons(w, d, list.Reasons)
	}
	fmt.Fprintln(w)
}

// decided says how old a decision is, by the time of the daemon; nothing if that is not known.
func decided(d *client.Decision, now float64) string {
	if d.Time == 0 || now < d.Time {
		return ""
	}
	age := now - d.Time
	return ", decided " + ago(&age)
}

// usersFeel says how long tokens take, and how long they may.
func usersFeel(d *client.Decision) string {
	sum, n := 0.0, 0
	for i := range d.Runners {
		if t := d.Runners[i].TokenTime; t != nil {
			sum, n = sum+*t, n+1
		}
	}
	if n == 0 {
		return "unknown: nothing shows how long tokens take"
	}
	text := fmt.Sprintf("%.1f ms per token", sum/float64(n))
	if d.Target != nil {
		text += fmt.Sprintf(", target %.1f ms", *d.Target)
	}
	if d.Objective != nil {
		text += fmt.Sprintf(", objective %.1f ms", *d.Objective)
		if d.Configured != nil {
			text += fmt.Sprintf(" instead of the configured %.1f ms, which is over 4 times the "+
				"time without batch work", *d.Configured)
		}
	}
	if d.Alone != nil {
		text += fmt.Sprintf(", %.1f ms without batch work", *d.Alone)
	}
	if d.Slowdown != nil && d.SlowdownAllowed != nil {
		text += fmt.Sprintf("; first tokens take %.2f times as long as without, %.2f allowed",
			*d.Slowdown, *d.SlowdownAllowed)
	}
	return text
}

// whatWasRead says of how many runners there is a reading, and how old the oldest is.
func whatWasRead(d *client.Decision) string {
	sources, oldest, n := []string{}, 0.0, 0
	for i := range d.Runners {
		read := d.Runners[i].Reading
		if read == nil || read.Age == nil {
			continue
		}
		n++
		oldest = max(oldest, *read.Age)
		if !slices.Contains(sources, read.Source) {
			sources = append(sources, read.Source)
		}
	}
	switch {
	case n == 0:
		return "nothing: no reading of a runner"
	case n == 1:
		return fmt.Sprintf("%s of 1 of %s, %s", sources[0],
			humanize.Count(len(d.Runners), "runner"), ago(&oldest))
	}
	return fmt.Sprintf("%s of %d of %s, the oldest %s", strings.Join(sources, ", "), n,
		humanize.Count(len(d.Runners), "runner"), ago(&oldest))
}

func runnerTable(w io.Writer, d *client.Decision) {
	table := newTable(w)
	fmt.Fprintln(table,
		"  RUNNER\tLINES\tALLOWED\tPER TOKEN\tFIRST TOKENS\tINTERACTIVE\tPROMPT TOKENS\tREAD\t"+
			"LIMITED BY")
	for i := range d.Runners {
		r := &d.Runners[i]
		printf(table, "  %s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.InFlight,
			r.Allowance, orUnknown(r.TokenTime, "%.1f ms"), firstTokenTime(r.FirstTokens),
			interactive(r), prompts(r), readingText(r), limit(d, r))
	}
	table.Flush()
}

// limitedBy says why no more lines start and, while the pool is watched, for how long.
func limitedBy(d *client.Decision, reasons map[string]client.Explanation) string {
	text := reasonText(d.Reason, reasons)
	if d.Reason != "watching" || d.WatchLeft == nil || d.WatchOf == nil {
		return text
	}
	return fmt.Sprintf("%s, at most %.0f s of %.0f left%s", d.Reason, *d.WatchLeft, *d.WatchOf,
		strings.TrimPrefix(text, d.Reason))
}

// idle reports whether no line waits for a runner that works.
func idle(d *client.Decision, r *client.RunnerDecision) bool {
	return d.Reason == "nothing_ready" && !r.BreakerOpen && !r.Evicting
}

func limit(d *client.Decision, r *client.RunnerDecision) string {
	switch {
	case idle(d, r):
		return "-"
	case r.BreakerOpen && r.Reason != "failing":
		return "unreachable"
	case r.Evicting:
		return r.Reason + ", evicting"
	}
	return r.Reason
}

func interactive(r *client.RunnerDecision) string {
	switch {
	case r.Running == nil:
		return "unknown"
	case r.Waiting == nil:
		return fmt.Sprintf("%.0f, waiting unknown", *r.Running)
	}
	return fmt.Sprintf("%.0f + %.0f waiting", *r.Running, *r.Waiting)
}

func prompts(r *client.RunnerDecision) string {
	if r.PromptAllowance == nil {
		return orUnknown(r.Prompt, "%.0f")
	}
	return orUnknown(r.Prompt, "%.0f") + " of " + orUnknown(r.PromptAllowance, "%.0f")
}

func readingText(r *client.RunnerDecision) string {
	if r.Reading == nil {
		return "never"
	}
	return r.Reading.Source + " " + ago(r.Reading.Age)
}

// explainRunnerReasons says what the reasons in the table mean, each once.
func explainRunnerReasons(
	w io.Writer, d *client.Decision, reasons map[string]client.Explanation,
) {
	var said []string
	for i := range d.Runners {
		if idle(d, &d.Runners[i]) {
			continue
		}
		reason := d.Runners[i].Reason
		if d.Runners[i].BreakerOpen && reason != "failing" {
			reason = "unreachable"
		}
		if reason != d.Reason && reason != "none" && !slices.Contains(said, reason) {
			said = append(said, reason)
			printf(w, "  %s\n", reasonText(reason, reasons))
		}
	}
}

// reasonText returns a reason with its meaning and what to do.
func reasonText(reason string, reasons map[string]client.Explanation) string {
	e := reasons[reason]
	if e.Meaning == "" {
		return reason
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s", reason, e.Meaning,
		strings.ReplaceAll(e.Remedy, "`", "")))
}

// historyTable prints decisions, one a row.
func historyTable(w io.Writer, pool string, decisions []client.Decision) {
	printf(w, "%s\n", poolArgument(pool))
	table := newTable(w)
	fmt.Fprintln(table,
		"  TIME\tLINES\tALLOWED\tPER TOKEN\tOBJECTIVE\tFIRST TOKENS\tINTERACTIVE\tEVICTED\t"+
			"LIMITED BY")
	evicted := 0.0
	if len(decisions) > 0 {
		evicted = decisions[0].Evicted
	}
	for i := range decisions {
		d := &decisions[i]
		seconds, fraction := math.Modf(d.Time)
		at := time.Unix(int64(seconds), int64(fraction*1e9))
		printf(table, "  %s\t%d\t%d\t%s\t%s\t%s\t%s\t%.0f\t%s\n",
			at.Format(time.TimeOnly), d.InFlight, d.Allowance, tokenTimes(d),
			orUnknown(d.Objective, "%.1f ms"), firstTokenTime(d.FirstTokens), allInteractive(d),
			max(0, d.Evicted-evicted), d.Reason)
		evicted = d.Evicted
	}
	if len(decisions) == 0 {
		fmt.Fprintln(table, "  no decisions in this time")
	}
	table.Flush()
}

// tokenTimes returns the token times of the fastest and the slowest runner.
func tokenTimes(d *client.Decision) string {
	least, most := math.Inf(1), math.Inf(-1)
	for i := range d.Runners {
		if t := d.Runners[i].TokenTime; t != nil {
			least, most = min(least, *t), max(most, *t)
		}
	}
	switch {
	case most < least:
		return "-"
	case most-least < 0.1:
		return fmt.Sprintf("%.1f ms", most)
	}
	return fmt.Sprintf("%.1f-%.1f ms", least, most)
}

// allInteractive returns the interactive requests of all runners.
func allInteractive(d *client.Decision) string {
	running, waiting, known := 0.0, 0.0, false
	for i := range d.Runners {
		if r := &d.Runners[i]; r.Running != nil && r.Waiting != nil {
			running, waiting, known = running+*r.Running, waiting+*r.Waiting, true
		}
	}
	if !known {
		return "-"
	}
	return fmt.Sprintf("%.0f + %.0f waiting", running, waiting)
}

func orUnknown(n *float64, format string) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf(format, *n)
}

// ago returns the age of something as text.
func ago(seconds *float64) string {
	switch {
	case seconds == nil:
		return "never"
	case *seconds < 10:
		return fmt.Sprintf("%.1f s ago", *seconds)
	}
	return humanize.Duration(time.Duration(*seconds*float64(time.Second))) + " ago"
}
