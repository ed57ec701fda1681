package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "Submit and manage batches",
		Long: `Submit batches to a daemon and manage them.

--server or TIDEFILL_SERVER is the daemon's URL, TIDEFILL_API_KEY the key. Over https the system's authorities are trusted, and
those of --ca-file or TIDEFILL_CA_FILE. With --json, the API's answers are printed, one object per row. Commands that wait for a
batch end with status 0 if it completed, 4 if it completed and lines failed, 3 if it ended otherwise.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		submitCommand(),
		listCommand(),
		getCommand(),
		watchCommand(),
		resultsCommand(),
		cancelCommand(),
		actionCommand("pause", "Start no more lines of a batch until it is resumed",
			"Start no more lines of a batch until it is resumed. Lines in flight finish. The "+
				"deadline "+
				"does not change.", (*client.Client).Pause),
		actionCommand("resume", "Continue a paused batch", "Continue a paused batch.",
			(*client.Client).Resume),
		actionCommand("retry", "Run the failed lines of a batch again, as a new batch",
			"Create a new batch of the failed lines of an ended batch, and print it.",
			(*client.Client).Retry),
		deleteCommand(),
	)
	return cmd
}

// remote holds the flags of a command that calls a daemon.
type remote struct {
	server  string
	options client.Options
	json    bool
}

func (r *remote) register(cmd *cobra.Command) {
	r.server = client.DefaultServer
	if server := os.Getenv("TIDEFILL_SERVER"); server != "" {
		r.server = server
	}
	cmd.Flags().StringVar(&r.server, "server", r.server, "the daemon's `URL` (TIDEFILL_SERVER)")
	cmd.Flags().StringVar(&r.options.APIKey, "api-key", "",
		"the API `key` (TIDEFILL_API_KEY, which hides it from other users of the machine)")
	cmd.Flags().StringVar(&r.options.Tenant, "tenant", os.Getenv("TIDEFILL_TENANT"),
		"act for this `tenant`, with a key of the role admin (TIDEFILL_TENANT)")
	r.registerConnection(cmd)
}

// registerConnection registers the flags of a command that calls any address of a daemon.
func (r *remote) registerConnection(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.options.CAFile, "ca-file", os.Getenv("TIDEFILL_CA_FILE"),
		"also trust the authorities in this `file` for https (TIDEFILL_CA_FILE)")
	cmd.Flags().StringVar(&r.options.CertFile, "cert-file", os.Getenv("TIDEFILL_CERT_FILE"),
		"the client `certificate` for a daemon that requires one (TIDEFILL_CERT_FILE)")
	cmd.Flags().StringVar(&r.options.KeyFile, "key-file", os.Getenv("TIDEFILL_KEY_FILE"),
		"the private key `file` of that certificate (TIDEFILL_KEY_FILE)")
	cmd.Flags().BoolVar(&r.json, "json", false,
		"print the API's answer, one JSON object per row")
}

func (r *remote) client() (*client.Client, error) {
	if r.options.APIKey == "" {
		r.options.APIKey = os.Getenv("TIDEFILL_API_KEY")
	}
	c, err := client.New(r.server, r.options)
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	return c, nil
}

// printJSON writes a value on one row.
func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// remoteCommand completes a command that calls a daemon.
func remoteCommand(
	cmd *cobra.Command, do func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error,
) *cobra.Command {
	return new(remote).command(cmd, do)
}

// command adds to a command the flags of the API's address, and calls do with its client.
func (r *remote) command(
	cmd *cobra.Command, do func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error,
) *cobra.Command {
	r.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		return withRemedy(do(cmd.Context(), c, r, args, cmd.OutOrStdout()))
	}
	return cmd
}

// withRemedy adds to an error the flag or variable that may remedy it.
func withRemedy(err error) error {
	if refused := (*client.Error)(nil); errors.As(err, &refused) &&
		refused.Status == http.StatusUnauthorized {
		return fmt.Errorf("%w; set TIDEFILL_API_KEY to a key of this daemon", err)
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w (see --server)", err)
	}
	if unknown := (*tls.CertificateVerificationError)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("%w; give the authority of the daemon's certificate by --ca-file or "+
			"TIDEFILL_CA_FILE", err)
	}
	return err
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
func describe(w io.Writer, b client.Batch) {
	status := b.Status
	if b.Tidefill.Paused {
		status += ", paused"
	}
	printf(w, "%s  %s\n", b.ID, status)
	row := func(name, format string, args ...any) {
		printf(w, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	c := b.Counts
	row("lines", "%s, %s completed, %s failed", humanize.Thousands(int64(c.Total)),
		humanize.Thousands(int64(c.Completed)), humanize.Thousands(int64(c.Failed)))
	row("endpoint", "%s", b.Endpoint)
	for _, m := range b.Tidefill.Models {
		row("model", "%s, %s", m.Model, humanize.Count(m.Lines, "line"))
	}
	if of := b.Resolved; of != nil {
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
	row("created", "%s", humanize.Instant(b.CreatedAt))
	if b.Ended() {
		row("ended", "%s", humanize.Instant(b.EndedAt()))
	} else {
		row("due", "%s", humanize.Instant(b.ExpiresAt))
	}
	if text := forecastText(b.Tidefill.Forecast); text != "" {
		row("predicted", "%s", text)
	}
	if b.Tidefill.RankError != "" {
		row("order", "last: %s", b.Tidefill.RankError)
	}
	if b.Tidefill.StartByMissed {
		row("started", "later than asked for by start_by")
	}
	for i, f := range b.Tidefill.Failures {
		row([]string{"failed", "", ""}[min(i, 2)], "%s × %s", humanize.Thousands(int64(f.Count)),
			humanize.Printable(f.String()))
	}
	if b.Ended() && c.Failed > 0 {
		row("", "send these lines again: tidefill batch retry %s", b.ID)
	}
	if b.Tidefill.Waiting != "" {
		row("waiting", "%s", b.Tidefill.Waiting)
	}
	if b.Tidefill.Reason != "" {
		row("stopped", "%s", b.Tidefill.Reason)
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
	for _, key := range sortedKeys(b.Metadata) {
		row("metadata", "%s=%s", key, b.Metadata[key])
	}
	for _, e := range b.Errors.Data {
		row("error", "%s", e)
	}
}
