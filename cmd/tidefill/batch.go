package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "Submit and manage batches",
		Long: `Submit batches to a daemon and manage them. A batch is named by its id, by the beginning of its id if no other has it, or by --latest.
Commands about several batches take several ids, or --status, --model, --meta and times that select them.

--server or TIDEFILL_SERVER is the daemon's URL, TIDEFILL_API_KEY the key; tidefill help environment has all variables, and tidefill
context gives daemons names. Over https the system's authorities are trusted, and those of --ca-file. With -o json, the API's answers
are printed, one object per row. Commands that wait for a batch end with status 0 if it completed, 4 if it completed and lines failed,
3 if it ended otherwise.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand())
	cmd.AddCommand(batchCommands()...)
	return cmd
}

// batchCommands returns the commands about batches, but the list.
func batchCommands() []*cobra.Command {
	return []*cobra.Command{
		submitCommand(),
		getCommand(),
		watchCommand(),
		resultsCommand(),
		cancelCommand(),
		actionCommand("pause", "Start no more lines of batches until they are resumed",
			"Start no more lines of batches until they are resumed. Lines in flight finish. The "+
				"deadlines do not change.", pausable, (*client.Client).Pause),
		actionCommand("resume", "Continue paused batches", "Continue paused batches.",
			func(b client.Batch) bool { return b.Tidefill.Paused && !b.Ended() },
			(*client.Client).Resume),
		setCommand(),
		retryCommand(),
		deleteCommand(),
	}
}

// ending returns the exit status of an ended batch as an error; nil: it completed and no line
// failed.
func ending(b client.Batch) error {
	switch {
	case b.Status != "completed":
		return exit{status: exitNotComplete}
	case b.Counts.Failed > 0:
		return exit{status: exitFailedLines}
	}
	return nil
}

// describe prints a batch for people.
// files are the local names of its input files; none: unknown.
func describe(w io.Writer, on screen, b client.Batch, now time.Time, files ...string) {
	printf(w, "%s  %s\n", b.ID, on.paint(statusColor(b), statusText(b)))
	row := func(name, format string, args ...any) {
		printf(w, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	painted := func(name string, c color, text string) {
		printf(w, "  %-10s %s\n", name, on.paint(c, text))
	}
	c, x := b.Ran(), b.Tidefill
	lines := fmt.Sprintf("%s, %s completed, %s failed", humanize.Thousands(int64(c.Total)),
		humanize.Thousands(int64(c.Completed)), humanize.Thousands(int64(c.Failed)))
	if x.NotRun > 0 {
		lines += fmt.Sprintf(", %s not run", humanize.Thousands(int64(x.NotRun)))
	}
	painted("lines", failedColor(b), lines)
	if !b.Ended() {
		row("progress", "%s, %s in flight, %s retrying", percent(c),
			humanize.Thousands(int64(x.InFlight)), humanize.Thousands(int64(x.Retrying)))
		if x.Rate > 0 && !x.Paused {
			row("rate", "%.1f lines/s", x.Rate)
		}
		if x.ETA > 0 {
			row("eta", "%s", instant(x.ETA, now))
		}
	}
	if x.Attempts > 0 {
		row("requests", "%s sent, retries included", humanize.Thousands(x.Attempts))
	}
	row("endpoint", "%s", b.Endpoint)
	for _, m := range x.Models {
		row("model", "%s, %s", m.Model, humanize.Count(m.Lines, "line"))
	}
	describeResolved(row, b.Resolved)
	if check := x.Options.Check; check != nil {
		row("check", "%s", humanize.Printable(check.String()))
	}
	if x.InputURL != "" {
		row("input", "%s", humanize.Printable(x.InputURL))
	}
	if x.RetryOf != "" {
		row("retry of", "%s", x.RetryOf)
	}
	row("created", "%s", instant(b.CreatedAt, now))
	if b.Ended() {
		row("ended", "%s", instant(b.EndedAt(), now))
	} else {
		row("due", "%s", instant(b.ExpiresAt, now))
	}
	if text := forecastText(x.Forecast); text != "" {
		painted("predicted", verdictColor(b), text)
	}
	if x.RankError != "" {
		row("order", "last: %s", x.RankError)
	}
	if x.StartByMissed {
		row("started", "later than asked for by start_by")
	}
	for i, f := range x.Failures {
		row([]string{"failed", ""}[min(i, 1)], "%s × %s", humanize.Thousands(int64(f.Count)),
			humanize.Printable(f.String()))
	}
	if retriable(b) {
		which := "the failed lines"
		if x.NotRun > 0 {
			which = "the lines that failed or did not run"
		}
		row("retry", "send again %s: tidefill batch retry %s", which, b.ID)
	}
	if x.Waiting != "" {
		row("waiting", "%s", x.Waiting)
	}
	if x.Reason != "" {
		row("stopped", "%s", x.Reason)
	}
	if u := b.Usage; u != nil {
		row("tokens", "%s in, %s out", humanize.Thousands(u.InputTokens),
			humanize.Thousands(u.OutputTokens))
	}
	for _, output := range b.Results() {
		if output.OutputFileID != "" {
			row("output", "%s", output.OutputFileID)
		}
		if output.ErrorFileID != "" {
			row("errors", "%s", output.ErrorFileID)
		}
	}
	if to := x.Output; to != nil {
		state := "not delivered yet"
		switch {
		case to.Delivered:
			state = "delivered"
		case b.Ended():
			state = strings.TrimSuffix("not delivered: "+to.Error, ": ")
		}
		row("bucket", "%s, %s", humanize.Printable(to.URL), humanize.Printable(state))
	}
	for _, key := range sortedKeys(b.Metadata) {
		row("metadata", "%s=%s", key, b.Metadata[key])
	}
	describeFaults(row, b, files)
}

// instant returns a time, and its distance from now.
func instant(at int64, now time.Time) string {
	if at == 0 {
		return "-"
	}
	return humanize.Instant(at) + ", " + humanize.Relative(at, now)
}

// describeResolved prints what the template and the profile of a batch stand for.
func describeResolved(row func(name, format string, args ...any), of *client.Resolved) {
	if of == nil {
		return
	}
	if of.Template != nil {
		row("template", "%s@%s, %s", humanize.Printable(of.Template.Name),
			humanize.Printable(of.Template.Version), of.Mode)
	}
	if of.Profile != "" {
		row("profile", "%s", humanize.Printable(of.Profile))
	}
	for _, warning := range of.Warnings {
		row("warning", "%s", humanize.Printable(warning))
	}
}

// shownFaults is the number of faults of input files that are printed.
const shownFaults = 10

// describeFaults prints the first faults of a batch's input files, and the command that prints the
// others.
func describeFaults(
	row func(name, format string, args ...any), b client.Batch, files []string,
) {
	faults := b.Errors.Data
	more := len(faults) - shownFaults
	if more <= 1 {
		more = 0
	}
	for _, fault := range faults[:len(faults)-more] {
		row("error", "%s", fault)
	}
	if len(files) == 0 {
		files = []string{"FILE"}
	}
	if more > 0 {
		count := humanize.Thousands(int64(more)) + " more"
		if faults[len(faults)-1].Code == "more_errors" {
			count = "more than " + humanize.Thousands(int64(more)) + " others"
		}
		row("", "%s: tidefill check %s", count, strings.Join(files, " "))
	}
}
