package postgres

import (
	"context"
	"fmt"
	"time"
)

// Beat counts a heartbeat and returns its number, above those of all earlier ones.
func (db *DB) Beat(ctx context.Context) (n int64, err error) {
	err = db.write(ctx, func(s *steps) {
		s.row("UPDATE cluster SET beat = beat + 1 RETURNING beat", nil, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("count a heartbeat: %w", err)
	}
	return n, nil
}

// OlderSince returns since when this database is known to be older than its files; zero: it is not.
// seen is the number of a heartbeat that was found beside them. A number that this database has not
// counted yet shows that it was restored. That is remembered until [DB.AcceptAge].
func (db *DB) OlderSince(ctx context.Context, seen int64) (since time.Time, err error) {
	var at int64
	err = db.write(ctx, func(s *steps) {
		s.do(`UPDATE cluster SET beat = @seen::bigint, older = coalesce(older, tidefill_now())
			WHERE beat < @seen::bigint`, args{"seen": seen})
		s.row("SELECT coalesce(older, 0) FROM cluster", nil, &at)
	})
	if err != nil {
		return since, fmt.Errorf("compare the database with heartbeat %d: %w", seen, err)
	}
	if at > 0 {
		since = time.UnixMicro(at)
	}
	return since, nil
}

// AcceptAge forgets that the database is older than its files.
func (db *DB) AcceptAge(ctx context.Context) error {
	err := db.write(ctx, func(s *steps) { s.do("UPDATE cluster SET older = NULL", nil) })
	if err != nil {
		return fmt.Errorf("accept the age of the database: %w", err)
	}
	return nil
}
