package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// NoticeCursor implements [store.Notices].
func (db *DB) NoticeCursor(
	ctx context.Context, endpoint string,
) (cursor store.Cursor, err error) {
	err = db.read(ctx, func(s *session) error {
		cursor, err = s.noticeCursor(ctx, endpoint)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read up to where endpoint %s has notices: %w", endpoint, err)
	}
	return cursor, nil
}

func (s *session) noticeCursor(
	ctx context.Context, endpoint string,
) (cursor store.Cursor, err error) {
	err = s.row(ctx, "SELECT cursor FROM notice_cursors WHERE endpoint = ?", []any{endpoint},
		&cursor)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return cursor, err
}

// AddNotices implements [store.Notices].
func (db *DB) AddNotices(
	ctx context.Context, endpoint string, from, to store.Cursor, notices []store.Notice,
) error {
	err := db.add(ctx, func(s *session) error {
		stored, err := s.noticeCursor(ctx, endpoint)
		if err != nil {
			return err
		}
		if stored != from {
			return store.ErrConflict
		}
		if err := s.exec(ctx, "INSERT OR REPLACE INTO notice_cursors (endpoint, cursor) "+
			"VALUES (?, ?)", endpoint, to); err != nil {
			return err
		}
		for _, n := range notices {
			if err := s.exec(ctx, `INSERT OR REPLACE INTO notices
					(endpoint, batch, id, event, created, attempts, due)
				SELECT ?, id, ?, ?, ?, ?, ? FROM batches WHERE id = ?`,
				endpoint, n.ID, n.Event, tables.Micros(n.CreatedAt), n.Attempts,
				tables.MicrosOrNull(n.Due), n.Batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add %d notices of endpoint %s: %w", len(notices), endpoint, err)
	}
	return nil
}

// UpdateNotice implements [store.Notices].
func (db *DB) UpdateNotice(ctx context.Context, endpoint string, n store.Notice) error {
	err := db.write(ctx, func(s *session) error {
		changed, err := s.affect(ctx, `UPDATE notices SET attempts = ?, due = ?
			WHERE endpoint = ? AND batch = ? AND id = ?`, n.Attempts, tables.MicrosOrNull(n.Due), endpoint,
			n.Batch, n.ID)
		if err == nil && changed == 0 {
			return store.ErrNotFound
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("update notice %s of endpoint %s: %w", n.ID, endpoint, err)
	}
	return nil
}

// LastNotices implements [store.Notices].
func (db *DB) LastNotices(
	ctx context.Context, endpoint string, batches []string,
) (map[string]store.Notice, error) {
	list, err := jsonList(batches)
	var notices []store.Notice
	if err == nil {
		notices, err = db.notices(ctx, `WHERE endpoint = ?
			AND batch IN (SELECT value FROM json_each(?))`, endpoint, list)
	}
	if err != nil {
		return nil, fmt.Errorf("read notices of endpoint %s: %w", endpoint, err)
	}
	last := make(map[string]store.Notice, len(notices))
	for _, n := range notices {
		last[n.Batch] = n
	}
	return last, nil
}

// DueNotices implements [store.Notices].
func (db *DB) DueNotices(
	ctx context.Context, endpoint string, at time.Time, limit int,
) ([]store.Notice, error) {
	notices, err := db.notices(ctx, `WHERE endpoint = ? AND due IS NOT NULL AND due <= ?
		ORDER BY due LIMIT ?`, endpoint, tables.Micros(at), limit)
	if err != nil {
		return nil, fmt.Errorf("read due notices of endpoint %s: %w", endpoint, err)
	}
	return notices, nil
}

// PendingNotices implements [store.Notices].
func (db *DB) PendingNotices(ctx context.Context, endpoint string) (n int, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.row(ctx, `SELECT count(*) FROM notices
			WHERE endpoint = ? AND due IS NOT NULL`, []any{endpoint}, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("count notices of endpoint %s: %w", endpoint, err)
	}
	return n, nil
}

// notices reads the notices of a condition, which is a constant of this package.
func (db *DB) notices(
	ctx context.Context, where string, args ...any,
) (notices []store.Notice, err error) {
	err = db.read(ctx, func(s *session) error {
		notices = nil
		return s.rows(ctx, "SELECT id, batch, event, created, attempts, due FROM notices "+where,
			args, func(rows tables.Row) error {
				n, err := tables.ScanNotice(rows)
				notices = append(notices, n)
				return err
			})
	})
	return notices, err
}
