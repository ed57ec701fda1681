package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// preview prints what would become of the batch.
func (s *submission) preview(
	ctx context.Context, c *client.Client, r *remote, request client.BatchRequest, out io.Writer,
) error {
	p, err := c.PreviewBatch(ctx, request)
	if err != nil {
		return err
	}
	err = r.print(out, p.Raw, func(out io.Writer) error {
		describePreview(out, p)
		return nil
	})
	if err == nil && (!p.Accepted || p.Verdict == "infeasible") {
		return exit{status: exitNotComplete}
	}
	return err
}

// describePreview prints a preview for people.
func describePreview(w io.Writer, p client.Preview) {
	row := func(name, format string, args ...any) {
		printf(w, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	switch {
	case len(p.Errors.Data) > 0:
		fmt.Fprintln(w, "dry run: the batch would fail")
	case !p.Accepted:
		fmt.Fprintln(w, "dry run: the batch would be refused")
	default:
		fmt.Fprintln(w, "dry run: the batch would be created")
	}
	row("lines", "%s", humanize.Thousands(int64(p.Lines)))
	due := ""
	if p.ExpiresAt > 0 {
		due = ", until " + humanize.Instant(p.ExpiresAt)
	}
	row("window", "%s%s", p.CompletionWindow, due)
	if text := forecastText(p.Forecast); text != "" {
		row("predicted", "%s", text)
	} else if p.PredictedFinish > 0 {
		row("predicted", "done %s", humanize.Instant(p.PredictedFinish))
	}
	if p.Reason != "" {
		row("", "%s", p.Reason)
	}
	if p.Nearest != nil {
		nearest := humanize.Instant(p.Nearest.Deadline)
		if p.Nearest.CompletionWindow != "" {
			nearest = p.Nearest.CompletionWindow + ", until " + nearest
		}
		row("nearest", "%s", nearest)
	}
	for _, window := range p.Windows {
		row("", "%-4s %s", window.CompletionWindow, deadlineText(window.Verdict))
	}
	if p.Work != nil {
		row("work", "%s of one engine", engineTime(*p.Work))
	}
	for _, m := range p.Models {
		row("model", "%s", modelPreview(m))
	}
	for _, pool := range p.Pools {
		row("pool", "%s, %s, %.1f GPU-hours", pool.Pool, humanize.Count(pool.Replicas,
			"replica"), pool.GPUHours)
	}
	describeAffected(row, p)
	for _, e := range p.Errors.Data {
		row("error", "%s", e)
	}
}

func modelPreview(m client.PreviewModel) string {
	text := m.Model + ", " + humanize.Count(m.Lines, "line")
	if m.InputTokens != nil && m.OutputTokens != nil {
		text += fmt.Sprintf(", about %s tokens in, %s out", humanize.Thousands(*m.InputTokens),
			humanize.Thousands(*m.OutputTokens))
	}
	if m.KnownAnswers != nil {
		text += ", from " + humanize.Count(*m.KnownAnswers, "known answer")
	}
	return text
}

func describeAffected(row func(name, format string, args ...any), p client.Preview) {
	for _, b := range p.Affected.Batches {
		row("affects", "%s: %s", b.ID, deadlineText(b.Verdict))
	}
	if more := p.Affected.Own - len(p.Affected.Batches); more > 0 {
		row("affects", "%d more of your batches", more)
	}
	if p.Affected.Others > 0 {
		row("affects", "%d of other tenants' batches", p.Affected.Others)
	}
}

func engineTime(seconds float64) string {
	return humanize.Duration(time.Duration(seconds * float64(time.Second)))
}
