package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func resultsCommand() *cobra.Command {
	var followed bool
	var dir string
	r, choice := new(remote), &batchChoice{one: true}
	cmd := &cobra.Command{
		Use:   "results BATCH",
		Short: "Fetch the results of a batch",
		Long: `Fetch the results of a batch. Without --out they go to standard output: the output and error files of an ended batch, or the
lines that a running batch has finished. With --follow, all lines as they finish, in no particular order. The lines that a
cancelled or expired batch did not run are in its error file only.

With --out, the output and error files are written into a directory.`,
		Example: `  tidefill batch results batch_123 --follow | jq -r .custom_id
  tidefill batch results batch_123 --out results/`,
	}
	choice.register(cmd, r)
	cmd.Flags().BoolVarP(&followed, "follow", "f", false, "continue until the batch has ended")
	cmd.Flags().StringVar(&dir, "out", "", "`directory` for the result files, created if need be")
	return r.command(cmd, objectFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		id, err := choice.id(ctx, c, args)
		if err != nil {
			return err
		}
		b, err := c.Batch(ctx, id)
		if err != nil {
			return err
		}
		switch {
		case dir == "" && b.Ended():
			return c.CopyResultFiles(ctx, b, out)
		case dir == "":
			return c.CopyResults(ctx, b.ID, followed, out)
		case !b.Ended() && !followed:
			return fmt.Errorf(
				"batch %s is %s and has no files yet; add --follow to wait for them, or leave out "+
					"--out to print the finished lines", b.ID, b.Status)
		}
		if !b.Ended() {
			if b, err = follow(ctx, c, b.ID, cmd.ErrOrStderr()); err != nil {
				return err
			}
		}
		files, err := c.Download(ctx, b, dir)
		if err != nil {
			return err
		}
		return r.print(out, files, func(out io.Writer) error {
			for _, f := range files {
				printf(out, "%s\n", f)
			}
			return nil
		})
	})
}
