package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

func watchCommand() *cobra.Command {
	return remoteCommand(&cobra.Command{
		Use:   "watch BATCH",
		Short: "Watch a batch until it ends",
		Long: `Watch a batch until it ends: a bar on a terminal, a line every few seconds elsewhere, with --json the batch object
after each change. An unreachable daemon is waited for.`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, c *client.Client, r *remote, args []string, out io.Writer) error {
		b, err := c.Batch(ctx, args[0])
		if err != nil {
			return err
		}
		var last string
		each := newBatchProgress(out).show
		if r.json {
			each = func(b client.Batch) {
				if now := string(b.Raw); now != last {
					last = now
					printJSON(out, b.Raw) // an output that is gone ends the process by SIGPIPE
				}
			}
		}
		if b, err = watch(ctx, c, b, each); err != nil {
			return err
		}
		if !r.json {
			describe(out, b)
		}
		return ending(b)
	})
}

const (
	watchEvery    = 500 * time.Millisecond
	watchPatience = 10 * time.Second // at most between two attempts to reach a daemon that is away
)

// watch calls each with the batch again and again, the last time when it has ended, and returns it.
func watch(
	ctx context.Context, c *client.Client, b client.Batch, each func(client.Batch),
) (client.Batch, error) {
	for pause := watchEvery / 8; ; pause = min(2*pause, watchEvery) { // small batches are over soon
		each(b)
		if b.Ended() {
			return b, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return b, err
		}
		err := patiently(ctx, func() error {
			now, err := c.Batch(ctx, b.ID)
			if err == nil {
				b = now
			}
			return err
		})
		if err != nil {
			return b, err
		}
	}
}

// patiently asks until it succeeds, or fails for good: daemons are restarted, and batches outlive
// that.
func patiently(ctx context.Context, ask func() error) error {
	for pause := watchEvery; ; pause = min(2*pause, watchPatience) {
		err := ask()
		if err == nil || !client.Temporary(err) {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
