package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations lead from one schema version to the next. The version of a database is the number of
// those that were applied. They are never changed once released, and there is no way back.
var migrations = loadMigrations()

func loadMigrations() (scripts []string) {
	paths, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	for _, path := range paths {
		var script []byte
		if script, err = migrationFiles.ReadFile(path); err != nil {
			break
		}
		scripts = append(scripts, string(script))
	}
	if err != nil || len(scripts) == 0 {
		panic(fmt.Sprintf("read the embedded migrations: %v", err))
	}
	return scripts
}

// migrationLock is the advisory lock of processes that migrate: a number that nobody else uses.
const migrationLock = 7_305_526_340_217_001

// oldestServer is the lowest server_version_num that is supported.
const oldestServer = 150_000

// Migrate connects to the database and applies the missing migrations, as Open does. It returns the
// versions of the schema before and after. dryRun: it changes nothing.
func Migrate(ctx context.Context, c Config, dryRun bool) (from, to int, err error) {
	db, err := connect(ctx, c, Options{})
	if err == nil {
		defer db.Close()
		err = db.checkServer(ctx)
	}
	switch {
	case err != nil:
	case dryRun:
		from, err = db.checkedVersion(ctx)
		to = len(migrations)
	default:
		from, to, err = db.migrate(ctx)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("migrate PostgreSQL: %w", err)
	}
	return from, to, nil
}

// checkServer refuses a server or a database that can't be used.
func (db *DB) checkServer(ctx context.Context) error {
	var version int
	var encoding string
	err := db.read(ctx, func(s *steps) {
		s.row(`SELECT current_setting('server_version_num')::bigint,
			current_setting('server_encoding')`, nil, &version, &encoding)
	})
	switch {
	case err != nil:
		return err
	case version < oldestServer:
		return fmt.Errorf("the server has version %d.%d; PostgreSQL 15 or later is needed",
			version/10_000, version%10_000)
	case encoding != "UTF8":
		return fmt.Errorf("the database has the encoding %s; create one with "+
			"CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", encoding)
	}
	return nil
}

// migrate applies the missing migrations in one transaction. Processes that start together do so in
// turn. If none is missing it writes nothing and waits for no lock.
func (db *DB) migrate(ctx context.Context) (from, to int, err error) {
	if from, err = db.checkedVersion(ctx); err != nil {
		return 0, 0, err
	}
	if from == len(migrations) {
		return from, from, nil
	}
	// Without the limit of calls: a migration may rewrite tables.
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		from, err = migrateIn(ctx, tx)
		return err
	})
	if err != nil {
		var newer newerSchema
		if errors.As(err, &newer) {
			return 0, 0, err
		}
		return 0, 0, fmt.Errorf("migrate the schema to version %d: %w", len(migrations),
			translate(ctx, err))
	}
	return from, len(migrations), nil
}

func migrateIn(ctx context.Context, tx pgx.Tx) (from int, err error) {
	if _, err := tx.Exec(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)",
		int64(migrationLock))); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, `CREATE TABLE IF NOT EXISTS schema_version (version bigint NOT NULL);
		INSERT INTO schema_version SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM schema_version)`,
	); err != nil {
		return 0, err
	}
	if err := tx.QueryRow(ctx, "SELECT version FROM schema_version", pgx.QueryExecModeExec).Scan(
		&from); err != nil {
		return 0, err
	}
	if from > len(migrations) {
		return 0, newerSchema(from)
	}
	for version := from; version < len(migrations); version++ {
		if _, err := tx.Exec(ctx, migrations[version]); err != nil {
			return 0, fmt.Errorf("from version %d: %w", version, err)
		}
	}
	if from == 0 {
		if _, err := tx.Exec(ctx, `INSERT INTO cluster (id, created)
			VALUES (gen_random_uuid()::text, tidefill_now())`); err != nil {
			return 0, err
		}
	}
	_, err = tx.Exec(ctx, fmt.Sprintf("UPDATE schema_version SET version = %d", len(migrations)))
	return from, err
}

// schemaVersion returns the version of the schema; 0: there is none.
func (db *DB) schemaVersion(ctx context.Context) (version int, err error) {
	var exists bool
	err = db.read(ctx, func(s *steps) {
		s.row("SELECT to_regclass('schema_version') IS NOT NULL", nil, &exists)
	})
	if err != nil || !exists {
		return 0, err
	}
	err = db.read(ctx, func(s *steps) {
		s.row("SELECT version FROM schema_version", nil, &version)
	})
	return version, err
}

// checkedVersion returns the version of the schema, which is not newer than this program.
func (db *DB) checkedVersion(ctx context.Context) (version int, err error) {
	version, err = db.schemaVersion(ctx)
	if err == nil && version > len(migrations) {
		err = newerSchema(version)
	}
	return version, err
}

// newerSchema is the version of a schema that is newer than this program.
type newerSchema int

// Error implements error.
func (v newerSchema) Error() string {
	return fmt.Sprintf("the schema has version %d, newer than %d, the newest that this release "+
		"knows; run the release that wrote it, or a later one", int(v), len(migrations))
}
