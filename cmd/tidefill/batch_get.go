package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func getCommand() *cobra.Command {
	r, choice, watch := new(remote), new(batchChoice), false
	cmd := &cobra.Command{
		Use:     "get BATCH...",
		Aliases: []string{"show", "describe"},
		Short:   "Show batches",
		Long: `Show all of batches: progress, rate, expected end, why no more lines start, and why lines failed. Unlike watch, --watch shows all of it
again every 2 s.`,
		Example: `  tidefill batch get batch_Fps2iyiA
  tidefill batch get --latest --watch
  tidefill batch get --latest --status completed
  tidefill batch get batch_Fps2iyiA batch_Hj7Qx0aa -o wide`,
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show again every 2 s, until Ctrl-C")
	choice.registerFilter(cmd, r)
	return r.command(cmd, tableFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		ids, err := choice.ids(ctx, c, args, nil, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return watching(ctx, watch, out, cmd.ErrOrStderr(), func(w io.Writer) error {
			return r.showAll(ctx, c, ids, w, screenOf(out))
		})
	})
}

// showAll prints batches, each in full or as rows of a table.
func (r *remote) showAll(
	ctx context.Context, c *client.Client, ids []string, out io.Writer, on screen,
) error {
	rows := batchRows(&r.output, on, time.Now())
	shown := 0
	err := each(ids, func(id string) error {
		b, err := c.Batch(ctx, id)
		if err != nil {
			return err
		}
		if r.format == formatWide || r.format == formatName {
			return rows.add(out, b)
		}
		if shown++; shown > 1 && !r.data() {
			fmt.Fprintln(out)
		}
		return r.show(out, on, b)
	})
	if endErr := rows.end(); endErr != nil {
		return endErr
	}
	return err
}

// action changes a batch, and returns it as it is then.
type action func(c *client.Client, ctx context.Context, id string) (client.Batch, error)

// actionCommand builds the command for one of a batch's actions. may reports whether it can be
// done to a batch.
func actionCommand(
	name, short, long string, may func(client.Batch) bool, do action,
) *cobra.Command {
	return batchAction(&cobra.Command{Use: name, Short: short, Long: long}, may,
		func() action { return do })
}

// batchAction completes a command that does the same to each of several batches. do is called when
// the flags are known.
func batchAction(
	cmd *cobra.Command, may func(client.Batch) bool, do func() action,
) *cobra.Command {
	r, choice := new(remote), &batchChoice{may: may}
	cmd.Use += " BATCH..."
	if cmd.Example == "" {
		cmd.Example = fmt.Sprintf("  tidefill batch %[1]s batch_Fps2iyiA batch_Hj7Qx0aa\n"+
			"  tidefill batch %[1]s --model m --meta project=nightly", cmd.Name())
	}
	choice.registerMany(cmd, r)
	return r.command(cmd, tableFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		ids, err := choice.ids(ctx, c, args, cmd.InOrStdin(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		on := screenOf(out)
		rows := batchRows(&r.output, on, time.Now())
		err = each(ids, func(id string) error {
			b, err := do()(c, ctx, id)
			switch {
			case err != nil:
				return err
			case len(ids) > 1 || r.format == formatWide || r.format == formatName:
				return rows.add(out, b)
			}
			return r.show(out, on, b)
		})
		if endErr := rows.end(); endErr != nil {
			return endErr
		}
		return err
	})
}

func retryCommand() *cobra.Command {
	r, choice := new(remote), &batchChoice{one: true, may: retriable}
	var wait waitFlags
	cmd := &cobra.Command{
		Use:   "retry BATCH",
		Short: "Run the failed lines of a batch again, as a new batch",
		Long:  "Create a new batch of the failed lines of an ended batch, and print it.",
	}
	wait.register(cmd)
	choice.register(cmd, r)
	return r.command(cmd, submitFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		id, err := choice.id(ctx, c, args)
		if err != nil {
			return err
		}
		b, err := c.Retry(ctx, id)
		if err != nil {
			return err
		}
		if wait.waits() {
			printf(cmd.ErrOrStderr(), "%s submitted\n", b.ID)
		}
		return wait.run(ctx, c, r, b, out, cmd.ErrOrStderr())
	})
}

func retriable(b client.Batch) bool { return b.Ended() && b.Counts.Failed > 0 }

func running(b client.Batch) bool { return !b.Ended() }

// pausable reports whether lines of a batch may start.
func pausable(b client.Batch) bool {
	return !b.Tidefill.Paused && (b.Status == "validating" || b.Status == "in_progress")
}

func cancelCommand() *cobra.Command {
	var gently bool
	cmd := &cobra.Command{
		Use:   "cancel",
		Short: "Stop batches and keep their finished lines",
		Long: "Stop batches and end their lines in flight. Finished lines keep their results; " +
			"the others are listed in the error file.",
	}
	cmd.Flags().BoolVar(&gently, "finish-in-flight", false,
		"let lines in flight finish, within the daemon's dispatch.cancel_grace")
	return batchAction(cmd, running, func() action {
		if gently {
			return (*client.Client).CancelGently
		}
		return (*client.Client).Cancel
	})
}

func setCommand() *cobra.Command {
	var priority int
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change the priority of batches",
		Long:  "Change the priority of batches that have not ended. Their other options stay.",
		Example: "  tidefill batch set batch_Fps2iyiA --priority 50\n" +
			"  tidefill batch set --meta project=nightly --priority -10",
	}
	cmd.Flags().Var(&integer{&priority, -100, 100}, "priority",
		"`rank` among your batches, from -100 to 100, higher first")
	if err := cmd.MarkFlagRequired("priority"); err != nil {
		panic(err) // it is defined above
	}
	return batchAction(cmd, running, func() action {
		return func(c *client.Client, ctx context.Context, id string) (client.Batch, error) {
			return c.SetPriority(ctx, id, priority)
		}
	})
}

func deleteCommand() *cobra.Command {
	r, choice := new(remote), &batchChoice{may: client.Batch.Ended}
	cmd := &cobra.Command{
		Use:     "delete BATCH...",
		Aliases: []string{"rm"},
		Short:   "Delete ended batches",
		Long: "Delete ended batches. Their input and result files remain until they expire or " +
			"are deleted (tidefill files delete).",
		Example: `  tidefill batch delete batch_Fps2iyiA
  tidefill batch delete --status completed --created-before 2027-01-01T00:00:00Z`,
	}
	choice.registerMany(cmd, r)
	return r.command(cmd, tableFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		ids, err := choice.ids(ctx, c, args, cmd.InOrStdin(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return each(ids, func(id string) error {
			answer, err := c.DeleteBatch(ctx, id)
			if err != nil {
				return err
			}
			return r.deleted(out, id, answer)
		})
	})
}

// deleted prints that an object is deleted, or the API's answer.
func (o *output) deleted(out io.Writer, id string, answer any) error {
	return o.print(out, answer, func(w io.Writer) error {
		if o.format == formatName {
			printf(w, "%s\n", id)
			return nil
		}
		printf(w, "%s  deleted\n", id)
		return nil
	})
}

// show prints a batch in full, its raw object or its id.
func (o *output) show(out io.Writer, on screen, b client.Batch, files ...string) error {
	if o.format == formatName {
		printf(out, "%s\n", b.ID)
		return nil
	}
	return o.print(out, b.Raw, func(w io.Writer) error {
		describe(w, on, b, time.Now(), files...)
		return nil
	})
}
