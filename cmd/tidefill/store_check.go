package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/copying"
	"github.com/tidefill/tidefill/store/places"
)

func storeCheckCommand() *cobra.Command {
	var file string
	var accept, allowMissing bool
	var sets settings
	cmd := &cobra.Command{
		Use:   "check --config FILE",
		Short: "Compare the records of a store with the bytes of its files",
		Long: `Compare the records of a store with the bytes of its files, after a restore for instance. It lists records whose bytes are missing, and
bytes that no record refers to, which a daemon removes once they are older than api.tuning.orphan_after. It changes nothing, and
daemons may run.

With --accept the database takes the bucket or directory of the configuration for its own, after files were moved, and a daemon goes
on removing what no record refers to, which it stops when it finds that the database was restored. While daemons run, the place
must be the one that the database knows.

Exit status 1 means that bytes are missing.`,
		Example: `  tidefill store check --config tidefill.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if allowMissing && !accept {
				return usageErrorf("--allow-missing needs --accept")
			}
			set, err := sets.parse()
			if err != nil {
				return err
			}
			cfg, err := config.Load(file, set...)
			if err != nil {
				return err
			}
			side, err := openConfigured(cmd.Context(), cfg, file, cmd.ErrOrStderr(),
				func(o *store.OpenOptions) { o.Node, o.Accepting = "store-check", accept })
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, side.Backend.Close()) }()
			elsewhere := places.New(places.Options{SecretsDir: cfg.Registry.SecretsDir,
				Data: cfg.Data, Existing: true})
			defer func() { err = errors.Join(err, elsewhere.Close()) }()
			sum, err := copying.Check(cmd.Context(), side.Backend, elsewhere)
			if err != nil {
				return err
			}
			if err := printComparison(cmd.OutOrStdout(), sum); err != nil {
				return err
			}
			missing := len(sum.Missing) > 0
			switch {
			case accept && missing && !allowMissing:
				return errors.New("not accepted, since bytes are missing: restore them, correct " +
					"the configuration, or accept their loss by --allow-missing")
			case accept:
				return acceptStore(cmd.Context(), cmd.OutOrStdout(), side.Backend)
			}
			err = printAge(cmd.Context(), cmd.OutOrStdout(), side.Backend)
			if err == nil && missing {
				err = exit{status: exitError}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "the configuration `file`")
	cmd.Flags().BoolVar(&accept, "accept", false,
		"take the place of the configuration, and the age of the database, for the right ones")
	cmd.Flags().BoolVar(&allowMissing, "allow-missing", false,
		"accept although bytes of records are missing")
	sets.register(cmd)
	return cmd
}

// acceptStore accepts the place and the age of a store that can be mistaken about them.
func acceptStore(ctx context.Context, out io.Writer, b *store.Backend) error {
	if b.Accept != nil {
		if err := b.Accept(ctx); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out, "accepted")
	return err
}

// printAge says if the database is known to be older than its files.
func printAge(ctx context.Context, out io.Writer, b *store.Backend) error {
	if b.Older == nil {
		return nil
	}
	err := b.Older(ctx)
	if errors.Is(err, store.ErrOlder) {
		_, err = fmt.Fprintln(out, "The database was restored: nothing that no record refers to "+
			"is removed until --accept.")
	}
	return err
}

func printComparison(out io.Writer, sum copying.Comparison) error {
	w := bufio.NewWriter(out)
	for _, r := range sum.Missing {
		printf(w, "missing   %s  %s %s", r.Key, r.Kind, r.ID)
		if r.Tenant != "" {
			printf(w, ", tenant %s", r.Tenant)
		}
		if r.Name != "" {
			printf(w, ", %s", r.Name)
		}
		printf(w, "\n")
	}
	newest := sum.Newest.Truncate(time.Second) // as times of storages may be
	for _, b := range sum.Leftovers {
		age := ""
		if !b.CommittedAt.Before(newest) {
			age = ", newer than all records"
		}
		printf(w, "leftover  %s  %s, %s%s\n", b.Key, humanize.Bytes(b.Bytes),
			b.CommittedAt.UTC().Format(time.RFC3339), age)
	}
	for _, r := range sum.Unreached {
		printf(w, "unknown   %s  %s %s, %s\n", r.Key, r.Kind, r.ID, r.Storage)
	}
	if sum.Fault != nil {
		printf(w, "unknown, since a storage of a profile can't be used: %v\n", sum.Fault)
	}
	if sum.Elsewhere > 0 {
		printf(w, "storages of profiles: %s, %d unknown\n", humanize.Count(sum.Elsewhere, "file"),
			len(sum.Unreached))
	}
	printf(w, "%s (%s): %d missing, %d known to no record\n",
		humanize.Count(sum.Blobs, "blob"), humanize.Bytes(sum.Bytes), len(sum.Missing),
		len(sum.Leftovers))
	return w.Flush()
}
