package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// NoticeCursor implements [store.Notices].
func (db *DB) NoticeCursor(ctx context.Context, endpoint string) (store.Cursor, error) {
	var cursor string
	err := db.read(ctx, func(s *steps) {
		s.row("SELECT cursor FROM notice_cursors WHERE endpoint = @endpoint",
			args{"endpoint": text(endpoint)}, &cursor)
	})
	if err != nil {
		return "", fmt.Errorf("read up to where endpoint %s has notices: %w", endpoint, err)
	}
	return store.Cursor(cursor), nil
}

// AddNotices implements [store.Notices].
func (db *DB) AddNotices(
	ctx context.Context, endpoint string, from, to store.Cursor, notices []store.Notice,
) error {
	last := map[string]store.Notice{}
	for _, n := range notices {
		last[n.Batch] = n
	}
	batches, ids, events := []string{}, []string{}, []string{}
	created, attempts, due := []int64{}, []int64{}, []*int64{}
	for _, n := range last {
		batches, ids = append(batches, text(n.Batch)), append(ids, text(n.ID))
		events, created = append(events, text(n.Event)), append(created, tables.Micros(n.CreatedAt))
		attempts, due = append(attempts, int64(n.Attempts)), append(due, tables.MicrosOrNull(n.Due))
	}
	all := args{"endpoint": text(endpoint), "from": text(string(from)), "to": text(string(to)),
		"batches": batches, "ids": ids, "events": events, "created": created,
		"attempts": attempts, "due": due}
	advance := `UPDATE notice_cursors SET cursor = @to
		WHERE endpoint = @endpoint AND cursor = @from`
	if from == "" {
		advance = `INSERT INTO notice_cursors AS c (endpoint, cursor) VALUES (@endpoint, @to)
			ON CONFLICT (endpoint) DO UPDATE SET cursor = excluded.cursor WHERE c.cursor = ''`
	}
	err := db.writeUnlessDeleted(ctx, func(s *steps) {
		s.change(refusedConflict, "another process has stored notices", advance, all)
		if len(last) == 0 {
			return
		}
		s.do(`INSERT INTO notices (endpoint, batch, id, event, created, attempts, due)
			SELECT @endpoint, b.id, n.id, n.event, n.created, n.attempts, n.due
			FROM unnest(@batches::text[], @ids::text[], @events::text[], @created::bigint[],
				@attempts::bigint[], @due::bigint[])
				AS n (batch, id, event, created, attempts, due)
			JOIN batches AS b ON b.id = n.batch ORDER BY b.id
			ON CONFLICT (endpoint, batch) DO UPDATE SET id = excluded.id, event = excluded.event,
				created = excluded.created, attempts = excluded.attempts, due = excluded.due`, all)
	})
	if err != nil {
		return fmt.Errorf("add %d notices of endpoint %s: %w", len(notices), endpoint, err)
	}
	return nil
}

// UpdateNotice implements [store.Notices].
func (db *DB) UpdateNotice(ctx context.Context, endpoint string, n store.Notice) error {
	var changed int64
	err := db.write(ctx, func(s *steps) {
		s.affect(&changed, `UPDATE notices SET attempts = @attempts, due = @due
			WHERE endpoint = @endpoint AND batch = @batch AND id = @id`,
			args{"attempts": int64(n.Attempts), "due": tables.MicrosOrNull(n.Due),
				"endpoint": text(endpoint), "batch": text(n.Batch), "id": text(n.ID)})
	})
	if err == nil && changed == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("update notice %s of endpoint %s: %w", n.ID, endpoint, err)
	}
	return nil
}

// LastNotices implements [store.Notices].
func (db *DB) LastNotices(
	ctx context.Context, endpoint string, batches []string,
) (map[string]store.Notice, error) {
	notices, err := db.notices(ctx, `WHERE endpoint = @endpoint
		AND batch = ANY (@batches::text[])`,
		args{"endpoint": text(endpoint), "batches": texts(batches)})
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
	notices, err := db.notices(ctx, `WHERE endpoint = @endpoint AND due IS NOT NULL
		AND due <= @at ORDER BY due LIMIT @limit`,
		args{"endpoint": text(endpoint), "at": tables.Micros(at), "limit": int64(limit)})
	if err != nil {
		return nil, fmt.Errorf("read due notices of endpoint %s: %w", endpoint, err)
	}
	return notices, nil
}

// PendingNotices implements [store.Notices].
func (db *DB) PendingNotices(ctx context.Context, endpoint string) (n int, err error) {
	err = db.read(ctx, func(s *steps) {
		s.row(`SELECT count(*) FROM notices WHERE endpoint = @endpoint
			AND due IS NOT NULL`, args{"endpoint": text(endpoint)}, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("count notices of endpoint %s: %w", endpoint, err)
	}
	return n, nil
}

// notices reads the notices of a condition, which is a constant of this package.
func (db *DB) notices(
	ctx context.Context, where string, all args,
) (notices []store.Notice, err error) {
	err = db.read(ctx, func(s *steps) {
		notices = nil
		s.rows("SELECT id, batch, event, created, attempts, due FROM notices "+where, all,
			func(row tables.Row) error {
				n, err := tables.ScanNotice(row)
				notices = append(notices, n)
				return err
			})
	})
	return notices, err
}
