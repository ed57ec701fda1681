package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/store"
)

func migrateCommand() *cobra.Command {
	var file, data string
	var dryRun bool
	var sets settings
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the schema of the store to this release",
		Long: `Migrate the schema of the store that a configuration selects to the version of this release. The daemon does the same when it starts;
run this command before an upgrade to learn how long it takes, or with a database user that may change tables.

Processes that migrate at the same time do so in turn. There is no way back: a release refuses a schema that is newer than itself.`,
		Example: `  tidefill migrate --config tidefill.yaml --dry-run`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(file, data, &sets)
			if err != nil {
				return err
			}
			backend, err := store.FindBackend(cfg.Store.Backend)
			if err != nil {
				return err
			}
			done, err := backend.Migrate(cmd.Context(), store.OpenOptions{
				Config: cfg.Store.Settings[cfg.Store.Backend], Directory: cfg.Data}, dryRun)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), describeMigration(done, dryRun))
			return err
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, and print what would be done")
	registerStore(cmd, &file, &data, &sets)
	return cmd
}

func describeMigration(m store.Migration, dryRun bool) string {
	switch {
	case m.From == m.To:
		return fmt.Sprintf("the schema has version %d, that of this release: nothing to do", m.To)
	case m.From == 0 && dryRun:
		return fmt.Sprintf("there is no schema: version %d would be created", m.To)
	case m.From == 0:
		return fmt.Sprintf("created the schema, version %d", m.To)
	case dryRun:
		return fmt.Sprintf("the schema would be migrated from version %d to %d", m.From, m.To)
	}
	return fmt.Sprintf("migrated the schema from version %d to %d", m.From, m.To)
}
