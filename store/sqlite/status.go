package sqlite

import (
	"context"
	"fmt"
	"time"
)

// Newest implements [store.Status]. It reads the newest rows only.
func (db *DB) Newest(ctx context.Context) (time.Time, error) {
	var newest int64
	err := db.read(ctx, func(s *session) error {
		return s.row(ctx, `SELECT coalesce(max(at), 0) FROM (
			SELECT (SELECT created FROM files ORDER BY seq DESC LIMIT 1) AS at
			UNION ALL SELECT (SELECT created FROM batches ORDER BY seq DESC LIMIT 1)
			UNION ALL SELECT max(ended) FROM batches WHERE ended > 0
			UNION ALL SELECT max(lease_until) FROM owners)`, nil, &newest)
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the newest time: %w", err)
	}
	if newest <= 0 {
		return time.Time{}, nil
	}
	return time.UnixMicro(newest).UTC(), nil
}

// Ping implements [store.Status]. It checks also that the file is where it was opened.
func (db *DB) Ping(ctx context.Context) error {
	err := db.files.check()
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	err = db.read(ctx, func(s *session) error {
		var newest int64
		return s.row(ctx, "SELECT newest FROM revisions", nil, &newest)
	})
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}
