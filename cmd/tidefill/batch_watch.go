package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func watchCommand() *cobra.Command {
	r, choice := new(remote), &batchChoice{one: true}
	cmd := &cobra.Command{
		Use:   "watch BATCH",
		Short: "Watch a batch until it ends",
		Long: `Watch a batch until it ends: on a terminal on one row, elsewhere by a row every few seconds; with -o json, print the batch object after
each change. Rates are means over a minute. If the daemon becomes unreachable, wait until it is back.`,
	}
	choice.register(cmd, r)
	return r.command(cmd, objectFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		id, err := choice.id(ctx, c, args)
		if err != nil {
			return err
		}
		if !r.data() {
			b, err := follow(ctx, c, id, out)
			if err != nil {
				return err
			}
			describe(out, screenOf(out), b, time.Now())
			return ending(b)
		}
		var last string
		b, err := c.Watch(ctx, id, func(b client.Batch) {
			if now := string(b.Raw); now != last {
				last = now
				_ = r.show(out, screen{}, b) // a closed pipe ends the process by SIGPIPE
			}
		})
		if err != nil {
			return err
		}
		return ending(b)
	})
}

// follow waits until a batch has ended, and reports its progress.
func follow(
	ctx context.Context, c *client.Client, id string, progress io.Writer,
) (client.Batch, error) {
	p := newBatchProgress(progress)
	defer p.end()
	return c.Watch(ctx, id, p.show)
}

// waitFlags are the flags of a command that creates a batch and may wait for its end.
type waitFlags struct {
	wait bool
	dir  string // for the result files; empty: they are not fetched
}

func (f *waitFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.wait, "wait", "w", false, "wait until the batch has ended")
	cmd.Flags().StringVar(&f.dir, "out", "",
		"`directory` for the result files, created if need be; implies --wait")
}

// waits reports whether the command waits.
func (f *waitFlags) waits() bool { return f.wait || f.dir != "" }

// run waits for a batch as far as the flags say, and prints it. Its error is that of ending.
func (f *waitFlags) run(
	ctx context.Context, c *client.Client, r *remote, b client.Batch, out, progress io.Writer,
	files ...string,
) (err error) {
	if f.waits() && !b.Ended() {
		if b, err = follow(ctx, c, b.ID, progress); err != nil {
			return err
		}
	}
	if f.dir != "" {
		files, err := c.Download(ctx, b, f.dir)
		if err != nil {
			return err
		}
		for _, file := range files {
			printf(progress, "wrote %s\n", file)
		}
	}
	if err := r.show(out, screenOf(out), b, files...); err != nil {
		return err
	}
	if !b.Ended() {
		return nil
	}
	return ending(b)
}
