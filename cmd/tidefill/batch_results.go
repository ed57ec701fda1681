package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func resultsCommand() *cobra.Command {
	var follow bool
	var dir string
	cmd := &cobra.Command{
		Use:   "results BATCH",
		Short: "Fetch the results of a batch",
		Long: `Fetch the results of a batch. Without --out they go to standard output: the output and error files of an ended batch, or the
lines that a running batch has finished. With --follow, all lines as they finish, in no particular order. The lines that a
cancelled or expired batch did not run are in its error file only.

With --out, the output and error files are written into a directory.`,
		Example: `  tidefill batch results batch_123 --follow | jq -r .custom_id
  tidefill batch results batch_123 --out results/`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&follow, "follow", false, "continue until the batch has ended")
	cmd.Flags().StringVar(&dir, "out", "", "`directory` for the result files, created if need be")
	return remoteCommand(cmd, func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error {
		b, err := c.Batch(ctx, args[0])
		if err != nil {
			return err
		}
		switch {
		case dir == "" && b.Ended():
			return c.CopyResultFiles(ctx, b, out)
		case dir == "":
			return c.CopyResults(ctx, b.ID, follow, out)
		case !b.Ended() && !follow:
			return fmt.Errorf(
				"batch %s is %s and has no files yet; add --follow to wait for them, or leave out "+
					"--out to print the finished lines", b.ID, b.Status)
		}
		if !b.Ended() {
			b, err = c.Watch(ctx, b.ID, newBatchProgress(cmd.ErrOrStderr()).show)
			if err != nil {
				return err
			}
		}
		files, err := c.Download(ctx, b, dir)
		if err != nil {
			return err
		}
		if r.json {
			return printJSON(out, files)
		}
		for _, f := range files {
			printf(out, "%s\n", f)
		}
		return nil
	})
}
