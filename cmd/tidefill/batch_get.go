package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func getCommand() *cobra.Command {
	return remoteCommand(&cobra.Command{
		Use:   "get BATCH",
		Short: "Show one batch",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, c *client.Client, r *remote, args []string, out io.Writer) error {
		b, err := c.Batch(ctx, args[0])
		if err != nil {
			return err
		}
		return show(out, r, b)
	})
}

// actionCommand builds the command for one of a batch's actions.
func actionCommand(
	name, short, long string,
	action func(*client.Client, context.Context, string) (client.Batch, error),
) *cobra.Command {
	return remoteCommand(&cobra.Command{
		Use:   name + " BATCH",
		Short: short,
		Long:  long,
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, c *client.Client, r *remote, args []string, out io.Writer) error {
		b, err := action(c, ctx, args[0])
		if err != nil {
			return err
		}
		return show(out, r, b)
	})
}

func cancelCommand() *cobra.Command {
	var gently bool
	cmd := &cobra.Command{
		Use:   "cancel BATCH",
		Short: "Stop a batch and keep its finished lines",
		Long: "Stop a batch and end its lines in flight. Finished lines keep their results; the " +
			"others are listed in the error file.",
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&gently, "finish-in-flight", false,
		"let lines in flight finish, within the daemon's dispatch.cancel_grace")
	return remoteCommand(cmd, func(ctx context.Context, c *client.Client, r *remote, args []string,
		out io.Writer) error {
		cancel := c.Cancel
		if gently {
			cancel = c.CancelGently
		}
		b, err := cancel(ctx, args[0])
		if err != nil {
			return err
		}
		return show(out, r, b)
	})
}

func deleteCommand() *cobra.Command {
	return remoteCommand(&cobra.Command{
		Use:   "delete BATCH",
		Short: "Delete an ended batch",
		Long: "Delete an ended batch. Its input and result files remain until they expire or are " +
			"deleted.",
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, c *client.Client, r *remote, args []string, out io.Writer) error {
		answer, err := c.DeleteBatch(ctx, args[0])
		if err != nil {
			return err
		}
		if r.json {
			return printJSON(out, answer)
		}
		_, err = fmt.Fprintf(out, "%s  deleted\n", printable{args[0]})
		return err
	})
}

func show(out io.Writer, r *remote, b client.Batch) error {
	if r.json {
		return printJSON(out, b.Raw)
	}
	describe(out, b)
	return nil
}
