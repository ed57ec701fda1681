package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
)

var (
	//go:embed schema.sql
	schema1 string
	//go:embed schema_2_leads.sql
	schema2 string
	//go:embed schema_3_references.sql
	schema3 string
	//go:embed schema_4_large.sql
	schema4 string
	//go:embed schema_5_usage.sql
	schema5 string
	//go:embed schema_6_learned.sql
	schema6 string
	//go:embed schema_7_notices.sql
	schema7 string
	//go:embed schema_8_moves.sql
	schema8 string
	//go:embed schema_9_teams.sql
	schema9 string
	//go:embed schema_10_poolhours.sql
	schema10 string
	//go:embed schema_11_ledger.sql
	schema11 string
	//go:embed schema_12_keyuses.sql
	schema12 string
)

// migrations lead from one schema version to the next. The file's user_version is the number of
// those that were applied.
var migrations = []string{schema1, schema2, schema3, schema4, schema5, schema6,
	schema7, schema8, schema9, schema10, schema11, schema12}

// migrate applies the missing migrations. Processes that open a new file together do so in turn. If
// none is missing it does not write, so that a process can start while another one, which may be
// suspended, holds the lock of the file.
func (db *DB) migrate(ctx context.Context) error {
	version, err := db.schemaVersion(ctx)
	if err == nil && version == len(migrations) {
		return nil
	}
	return db.write(ctx, func(s *session) error {
		var version int
		if err := s.row(ctx, "PRAGMA user_version", nil, &version); err != nil {
			return err
		}
		if version > len(migrations) {
			return newerSchema(version)
		}
		for ; version < len(migrations); version++ {
			if err := s.script(ctx, migrations[version]); err != nil {
				return fmt.Errorf("migrate schema from version %d: %w", version, err)
			}
			if err := s.script(ctx, fmt.Sprintf(
				"PRAGMA user_version = %d", version+1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// schemaVersion returns the version of the schema; 0: there is none.
func (db *DB) schemaVersion(ctx context.Context) (version int, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.row(ctx, "PRAGMA user_version", nil, &version)
	})
	return version, err
}

// newerSchema is the version of a schema that is newer than this program.
type newerSchema int

// Error implements error.
func (v newerSchema) Error() string {
	return fmt.Sprintf("schema version %d is newer than %d, the newest that this release knows; "+
		"run the release that wrote the file, or a later one", int(v), len(migrations))
}

// Migrate applies the missing migrations to the database file at path, as Open does. It returns the
// versions of the schema before and after. dryRun: it changes nothing, and a missing file has
// version 0.
func Migrate(ctx context.Context, path string, dryRun bool) (from, to int, err error) {
	from, err = migrateFile(ctx, path, dryRun)
	if err != nil {
		return 0, 0, fmt.Errorf("migrate database %s: %w", path, err)
	}
	return from, len(migrations), nil
}

func migrateFile(ctx context.Context, path string, dryRun bool) (from int, err error) {
	if _, err := os.Stat(path); dryRun && errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	db, err := openPool(path, Options{}.withDefaults())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.openSessions(ctx); err != nil {
		return 0, err
	}
	if from, err = db.schemaVersion(ctx); err != nil {
		return 0, err
	}
	if from > len(migrations) {
		return 0, newerSchema(from)
	}
	if dryRun {
		return from, nil
	}
	return from, db.migrate(ctx)
}
