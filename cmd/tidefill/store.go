package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/copying"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Back up or check what is stored, or move it to another store",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(storeBackupCommand(), storeCheckCommand(), storeCopyCommand())
	return cmd
}

func storeCopyCommand() *cobra.Command {
	var from, to string
	var allowMissing bool
	cmd := &cobra.Command{
		Use:   "copy --from FILE --to FILE",
		Short: "Move a stopped installation to another store",
		Long: `Move a stopped installation from the store of one configuration to that of another, such as from the embedded store to PostgreSQL
and a bucket, or back. Files, batches in every state, uploads, idempotency keys, what was learned of pools, and the results of batches
that run are copied and compared; batches continue where they were. The target must be empty, or have been moved to the source before.

Stop all processes of both stores first. Run the command again after an error or a cut: it continues. A daemon starts with neither
an incomplete target nor a source that was moved.`,
		Example: `  tidefill store copy --from embedded.yaml --to cluster.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if from == "" || to == "" {
				return usageErrorf("give the configurations of both stores by --from and --to")
			}
			source, err := openSide(cmd.Context(), from, cmd.ErrOrStderr(), moving)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, source.Backend.Close()) }()
			target, err := openSide(cmd.Context(), to, cmd.ErrOrStderr(), moving)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, target.Backend.Close()) }()
			p := &copyProgress{out: cmd.ErrOrStderr()}
			sum, err := copying.Copy(cmd.Context(), source, target,
				copying.Options{AllowMissing: allowMissing, Progress: p.show})
			p.end()
			if err != nil {
				return err
			}
			return printCopy(cmd.OutOrStdout(), sum, to)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the configuration `file` of the store to move")
	cmd.Flags().StringVar(&to, "to", "", "the configuration `file` of the store to move to")
	cmd.Flags().BoolVar(&allowMissing, "allow-missing", false,
		"complete the copy although bytes of files are missing in the source")
	return cmd
}

// moving opens a store for a copy.
func moving(o *store.OpenOptions) { o.Node, o.Moving = "store-copy", true }

// openSide opens the store of a configuration.
func openSide(
	ctx context.Context, file string, log io.Writer, how func(*store.OpenOptions),
	set ...config.Setting,
) (side copying.Side, err error) {
	cfg, err := config.Load(file, set...)
	if err != nil {
		return side, err
	}
	return openConfigured(ctx, cfg, file, log, how)
}

// openConfigured opens the store of a configuration that was read from a file.
func openConfigured(
	ctx context.Context, cfg config.Config, file string, log io.Writer,
	how func(*store.OpenOptions),
) (side copying.Side, err error) {
	backend, err := store.FindBackend(cfg.Store.Backend)
	if err != nil {
		return side, err
	}
	directory, err := filepath.Abs(cfg.Data)
	if err != nil {
		return side, err
	}
	side = copying.Side{Name: file, Place: fmt.Sprintf("the %s store of %s, data %s",
		cfg.Store.Backend, file, directory)}
	options := store.OpenOptions{
		Config: cfg.Store.Settings[cfg.Store.Backend], Directory: cfg.Data,
		Expiry: time.Now, Logger: newLogger(cfg.Log.Format, slog.LevelWarn, log)}
	how(&options)
	side.Backend, err = backend.Open(ctx, options)
	if err != nil {
		return side, fmt.Errorf("%s: %w", file, err)
	}
	return side, nil
}

// copyProgress prints the progress of a copy now and then.
type copyProgress struct {
	out  io.Writer
	last time.Time
	sum  copying.Summary
}

const copyProgressEvery = time.Second

func (p *copyProgress) show(sum copying.Summary) {
	p.sum = sum
	if time.Since(p.last) >= copyProgressEvery {
		p.last = time.Now()
		p.print()
	}
}

// end prints the last state, if any was shown.
func (p *copyProgress) end() {
	if !p.last.IsZero() {
		p.print()
	}
}

func (p *copyProgress) print() {
	rows := 0
	for _, n := range p.sum.Rows {
		rows += n.Total
	}
	fmt.Fprintf(p.out, "compared %s, %s (%s), %s of running batches\n",
		humanize.Count(rows, "record"), humanize.Count(p.sum.Blobs.Total, "blob"),
		humanize.Bytes(p.sum.Blobs.Bytes), humanize.Count(p.sum.Journals.Total, "result"))
}

func printCopy(out io.Writer, sum copying.Summary, to string) error {
	if sum.Moved {
		_, err := fmt.Fprintf(out, "moved before: nothing to do. Start with %s.\n", to)
		return err
	}
	for _, kind := range store.RowKinds {
		n := sum.Rows[kind]
		fmt.Fprintf(out, "%-17s %d, written %d, removed %d\n", kind, n.Total, n.Written, n.Removed)
	}
	fmt.Fprintf(out, "%-17s %d (%s), written %d, of which replaced %d\n", "blobs", sum.Blobs.Total,
		humanize.Bytes(sum.Blobs.Bytes), sum.Blobs.Written, sum.Replaced)
	fmt.Fprintf(out, "%-17s %d (%s), written %d\n", "results", sum.Journals.Total,
		humanize.Bytes(sum.Journals.Bytes), sum.Journals.Written)
	if sum.Elsewhere > 0 {
		fmt.Fprintf(out, "left in the storages of profiles, which the target must reach: %s (%s)\n",
			humanize.Count(sum.Elsewhere, "file"), humanize.Bytes(sum.ElsewhereBytes))
	}
	if sum.MissingBlobs > 0 {
		fmt.Fprintf(out, "missing in the source: %d blobs, such as %s\n", sum.MissingBlobs,
			sum.Missing[0])
	}
	if sum.DamagedBytes > 0 {
		fmt.Fprintf(out, "damaged in journals of the source: %s; their lines are sent again\n",
			humanize.Bytes(sum.DamagedBytes))
	}
	_, err := fmt.Fprintf(out, "verified: both stores have the same records, bytes and results. "+
		"Start with %s.\n", to)
	return err
}
