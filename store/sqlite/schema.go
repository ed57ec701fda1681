package sqlite

import (
	"context"
	_ "embed"
	"fmt"
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
)

// migrations lead from one schema version to the next. The file's user_version is the number of
// those that were applied.
var migrations = []string{schema1, schema2, schema3, schema4, schema5, schema6,
	schema7}

// migrate applies the missing migrations. Processes that open a new file together do so in turn. If
// none is missing it does not write, so that a process can start while another one, which may be
// suspended, holds the lock of the file.
func (db *DB) migrate(ctx context.Context) error {
	var version int
	err := db.read(ctx, func(s *session) error {
		return s.row(ctx, "PRAGMA user_version", nil, &version)
	})
	if err == nil && version == len(migrations) {
		return nil
	}
	return db.write(ctx, func(s *session) error {
		var version int
		if err := s.row(ctx, "PRAGMA user_version", nil, &version); err != nil {
			return err
		}
		if version > len(migrations) {
			return fmt.Errorf("schema version %d is newer than %d, the newest that this release "+
				"knows; run the release that wrote the file, or a later one", version,
				len(migrations))
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
