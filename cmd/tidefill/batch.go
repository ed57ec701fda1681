package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func batchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "Submit batches and look after them",
		Long: `Submit batches to a daemon and look after them.

The daemon is found by --server or TIDEFILL_SERVER, the key is TIDEFILL_API_KEY. Over https the system's authorities are
trusted, and those of --ca-file or TIDEFILL_CA_FILE. With --json, what the API answered is
printed, one object a line. Commands that wait for a batch end with status 0 when it completed, 4 when it completed and
lines failed, 3 when it ended otherwise.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		submitCommand(),
		listCommand(),
		getCommand(),
		watchCommand(),
		resultsCommand(),
		actionCommand("cancel", "Stop a batch and keep what is done",
			"Stop a batch. Lines under way may finish; what is done is kept, what isn't is listed in the error file."),
		actionCommand("pause", "Start no more lines of a batch until it is resumed",
			"Start no more lines of a batch until it is resumed. Lines under way finish, and its deadline stays."),
		actionCommand("resume", "Go on with a paused batch", "Go on with a paused batch."),
		actionCommand("retry", "Run the failed lines of a batch again, as a new batch",
			"Make a new batch of the lines of an ended batch that failed. Its id is printed."),
		deleteCommand(),
	)
	return cmd
}

const defaultServer = "http://127.0.0.1:8080"

// remote is how a command reaches a daemon and prints its answers.
type remote struct {
	server, key string
	trust       client.Trust
	json        bool
}

func (r *remote) register(cmd *cobra.Command) {
	r.server = defaultServer
	if server := os.Getenv("TIDEFILL_SERVER"); server != "" {
		r.server = server
	}
	cmd.Flags().StringVar(&r.server, "server", r.server, "the daemon's `URL` (TIDEFILL_SERVER)")
	cmd.Flags().StringVar(&r.key, "api-key", "",
		"the API `key` (TIDEFILL_API_KEY, which other users of the machine can't see)")
	cmd.Flags().StringVar(&r.trust.CAFile, "ca-file", os.Getenv("TIDEFILL_CA_FILE"),
		"trust the authorities in this `file`, too, for https (TIDEFILL_CA_FILE)")
	cmd.Flags().StringVar(&r.trust.CertFile, "cert-file", os.Getenv("TIDEFILL_CERT_FILE"),
		"show this `certificate` to a daemon that asks for one (TIDEFILL_CERT_FILE)")
	cmd.Flags().StringVar(&r.trust.KeyFile, "key-file", os.Getenv("TIDEFILL_KEY_FILE"),
		"the private key `file` of that certificate (TIDEFILL_KEY_FILE)")
	cmd.Flags().BoolVar(&r.json, "json", false,
		"print what the API answered, one JSON object a line")
}

func (r *remote) client() (*client.Client, error) {
	if r.key == "" {
		r.key = os.Getenv("TIDEFILL_API_KEY")
	}
	c, err := client.New(r.server, r.key, r.trust)
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	return c, nil
}

// printJSON writes a value on one line.
func printJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// remoteCommand makes a command that talks to a daemon.
func remoteCommand(
	cmd *cobra.Command, do func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error,
) *cobra.Command {
	r := new(remote)
	r.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		return do(cmd.Context(), c, r, args, cmd.OutOrStdout())
	}
	return cmd
}

// ending turns the state of an ended batch into an exit status.
func ending(b client.Batch) error {
	switch {
	case b.Status != "completed":
		return exit{status: exitNotComplete}
	case b.Counts.Failed > 0:
		return exit{status: exitFailedLines}
	}
	return nil
}

// describe says in a few lines how a batch stands.
func describe(w io.Writer, b client.Batch) {
	status := b.Status
	if b.Tidefill.Paused {
		status += ", paused"
	}
	fmt.Fprintf(w, "%s  %s\n", b.ID, status)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	c := b.Counts
	row("lines", "%s, %s completed, %s failed", humanize.Thousands(int64(c.Total)),
		humanize.Thousands(int64(c.Completed)), humanize.Thousands(int64(c.Failed)))
	row("endpoint", "%s", b.Endpoint)
	for _, m := range b.Tidefill.Models {
		row("model", "%s, %s", m.Model, humanize.Count(m.Lines, "line"))
	}
	row("created", "%s", humanize.Instant(b.CreatedAt))
	if b.Ended() {
		row("ended", "%s", humanize.Instant(b.EndedAt()))
	} else {
		row("due", "%s", humanize.Instant(b.ExpiresAt))
	}
	if b.Tidefill.Waiting != "" {
		row("waiting", "%s", b.Tidefill.Waiting)
	}
	if b.Tidefill.Reason != "" {
		row("stopped", "%s", b.Tidefill.Reason)
	}
	if u := b.Usage; u != nil {
		row("tokens", "%s in, %s out", humanize.Thousands(u.InputTokens), humanize.Thousands(u.OutputTokens))
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
	for _, fault := range b.Errors.Data {
		row("fault", "%s", fault)
	}
}
