package main

import (
	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/store"
)

func storeBackupCommand() *cobra.Command {
	var file, data string
	var sets settings
	cmd := &cobra.Command{
		Use:   "backup DIRECTORY",
		Short: "Back up an embedded store while the daemon runs",
		Long: `Write a copy of an embedded store into a new directory, while daemons run. It is what a crash at that instant would have left: start
a daemon with --data DIRECTORY to use it, or copy it back. Files are hard links on the same file system, so they take no space until
the daemon deletes its own; elsewhere they are copied. Use a user that may read the data directory.

A cluster store is backed up by its database and its bucket: docs/cluster.md.`,
		Example: `  tidefill store backup --data /var/lib/tidefill /backup/tidefill-2027-01-31`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := loadStore(file, data, &sets)
			if err != nil {
				return err
			}
			backend, err := store.FindBackend(cfg.Store.Backend)
			if err != nil {
				return err
			}
			if backend.Backup == nil {
				return usageErrorf("the store of %s is %s, which is backed up by its database and "+
					"its bucket: docs/cluster.md", file, cfg.Store.Backend)
			}
			sum, err := backend.Backup(cmd.Context(), store.OpenOptions{Directory: cfg.Data},
				args[0])
			if err != nil {
				return err
			}
			printf(cmd.OutOrStdout(), "backed up into %s: the database, %s, %s; copied %s, the "+
				"rest is linked\n", args[0], humanize.Count(sum.Blobs, "blob"),
				humanize.Count(sum.Journals, "journal"), humanize.Bytes(sum.CopiedBytes))
			return nil
		},
	}
	registerStore(cmd, &file, &data, &sets)
	return cmd
}

// registerStore registers the flags that name the store of a command.
func registerStore(cmd *cobra.Command, file, data *string, sets *settings) {
	cmd.Flags().StringVar(file, "config", "", "the configuration `file`")
	cmd.Flags().StringVar(data, "data", "", "the data `directory` of an embedded store")
	sets.register(cmd)
}

// loadStore returns the configuration of the store that the flags name. They must name one: the
// default is a directory below the current one, which most likely is not meant.
func loadStore(file, data string, sets *settings) (cfg config.Config, err error) {
	if file == "" && data == "" {
		return cfg, usageErrorf("which store? Give --config FILE, or --data DIRECTORY for the " +
			"embedded one")
	}
	settings, err := sets.parse()
	if err != nil {
		return cfg, err
	}
	if data != "" {
		settings = append(settings, setting("data", "data", data))
	}
	return config.Load(file, settings...)
}
