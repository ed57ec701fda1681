package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func watchCommand() *cobra.Command {
	return remoteCommand(&cobra.Command{
		Use:   "watch BATCH",
		Short: "Watch a batch until it ends",
		Long: `Watch a batch until it ends: print its progress every few seconds, or with --json the batch object after each change. If the
daemon becomes unreachable, wait until it is back.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, c *client.Client, r *remote, args []string, out io.Writer) error {
		var last string
		each := newBatchProgress(out).show
		if r.json {
			each = func(b client.Batch) {
				if now := string(b.Raw); now != last {
					last = now
					_ = printJSON(out, b.Raw) // a closed pipe ends the process by SIGPIPE
				}
			}
		}
		b, err := c.Watch(ctx, args[0], each)
		if err != nil {
			return err
		}
		if !r.json {
			describe(out, b)
		}
		return ending(b)
	})
}
