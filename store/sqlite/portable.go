package sqlite

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// portable reads and writes rows of one kind.
type portable struct {
	query  string
	scan   func(tables.Row) (store.Row, error)
	remove string // a statement with the arguments that keyed returns
	keyed  func(store.RowKey) []any
	add    func(context.Context, *DB, *session, store.Row) error
}

func byNumber(k store.RowKey) []any { return []any{k.Number} }
func byName(k store.RowKey) []any   { return []any{k.Name} }
func byNames(k store.RowKey) []any  { return []any{k.Name, k.Sub} }
func byChunk(k store.RowKey) []any  { return []any{k.Name, k.Number} }
func byUse(k store.RowKey) []any    { return []any{k.Name, k.Sub, k.Third, k.Number} }

var portables = map[store.RowKind]portable{
	store.FileRows: {"SELECT seq, doc, summary FROM files ORDER BY seq", tables.ExportFile,
		"DELETE FROM files WHERE seq = ?", byNumber, addFile},
	store.UploadRows: {"SELECT seq, doc FROM uploads ORDER BY seq",
		tables.ExportDocument[store.Upload], "DELETE FROM uploads WHERE seq = ?", byNumber,
		addUpload},
	store.PartRows: {"SELECT seq, doc FROM parts ORDER BY seq", tables.ExportDocument[store.Part],
		"DELETE FROM parts WHERE seq = ?", byNumber, addPart},
	store.BatchRows: {`SELECT b.seq, b.doc, b.ended, p.doc FROM batches AS b
		LEFT JOIN batch_parameters AS p ON p.batch = b.seq ORDER BY b.seq`, tables.ExportBatch,
		"DELETE FROM batches WHERE seq = ?", byNumber, addBatch},
	store.ChunkRows: {"SELECT " + tables.ChunkColumns + " FROM chunks ORDER BY batch, idx",
		tables.ExportChunk, "DELETE FROM chunks WHERE batch = ? AND idx = ?", byChunk, addChunk},
	store.KeyRows: {`SELECT tenant, key, value, expires FROM idempotency_keys
		ORDER BY tenant, key`, tables.ExportKey,
		"DELETE FROM idempotency_keys WHERE tenant = ? AND key = ?", byNames, addKey},
	store.LearnedRows: {"SELECT pool, kind, data, saved FROM learned ORDER BY pool, kind",
		tables.ExportLearned, "DELETE FROM learned WHERE pool = ? AND kind = ?", byNames,
		addLearned},
	store.EpochRows: {`SELECT '' AS name, newest AS epoch FROM lead_epochs WHERE newest > 0
		UNION ALL SELECT name, epoch FROM locks ORDER BY name`, tables.ExportEpoch,
		"DELETE FROM locks WHERE name = ?", byName, addEpoch},
	store.NoticeRows: {`SELECT endpoint, id, batch, event, created, attempts, due FROM notices
		ORDER BY endpoint, batch`, tables.ExportNotice,
		"DELETE FROM notices WHERE endpoint = ? AND batch = ?", byNames, addNotice},
	store.HourRows: {"SELECT " + tables.PoolHourColumns + " FROM pool_hours ORDER BY pool, hour",
		tables.ExportPoolHour, "DELETE FROM pool_hours WHERE pool = ? AND hour = ?", byChunk,
		func(ctx context.Context, _ *DB, s *session, row store.Row) error {
			return addPoolHour(ctx, s, "", row.Value.(store.PoolHour), "", 0)
		}},
	store.UsageRows: {"SELECT " + tables.UsedSums + " FROM ledger" + tables.UsedRows,
		tables.ExportUsed, `DELETE FROM ledger
			WHERE tenant = ? AND model = ? AND class = ? AND hour = ?`, byUse,
		func(ctx context.Context, _ *DB, s *session, row store.Row) error {
			return addUsed(ctx, s, row.Value.(store.Used), store.Owner{}, 0)
		}},
	store.KeyUseRows: {tables.SelectKeyUses + "hash", tables.ExportKeyUse,
		"DELETE FROM key_uses WHERE hash = ?", byName,
		func(ctx context.Context, _ *DB, s *session, row store.Row) error {
			return noteKey(ctx, s, row.Value.(store.KeyUse))
		}},
}

// ExportRows implements [store.Portable]. It holds one reading session until it ends.
func (db *DB) ExportRows(
	ctx context.Context, kind store.RowKind,
) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		stopped, err := db.exportRows(ctx, kind, yield)
		if err != nil && !stopped {
			yield(store.Row{}, fmt.Errorf("export %s: %w", kind, translate(ctx, err)))
		}
	}
}

func (db *DB) exportRows(
	ctx context.Context, kind store.RowKind, yield func(store.Row, error) bool,
) (stopped bool, err error) {
	p, ok := portables[kind]
	if !ok {
		return false, fmt.Errorf("%q is no kind of rows", kind)
	}
	s, err := db.readers.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer db.readers.release(s)
	err = s.rows(ctx, p.query, nil, func(rows tables.Row) error {
		row, err := p.scan(rows)
		if err == nil && !yield(row, nil) {
			stopped = true
			return errStopped
		}
		return err
	})
	return stopped, err
}

// errStopped ends a query whose reader wants no more rows.
var errStopped = errors.New("no more rows are wanted")

// ImportRows implements [store.Portable].
func (db *DB) ImportRows(
	ctx context.Context, kind store.RowKind, rows []store.Row, removed []store.RowKey,
) error {
	p, ok := portables[kind]
	if !ok {
		return fmt.Errorf("import rows: %q is no kind of rows", kind)
	}
	err := db.add(ctx, func(s *session) error {
		for _, k := range removed {
			if err := s.exec(ctx, p.remove, p.keyed(k)...); err != nil {
				return err
			}
		}
		for _, row := range rows {
			if err := s.exec(ctx, p.remove, p.keyed(row.Key)...); err != nil {
				return err
			}
			if err := p.add(ctx, db, s, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("import %d %s: %w", len(rows), kind, err)
	}
	return nil
}

func addFile(ctx context.Context, _ *DB, s *session, row store.Row) error {
	f, err := tables.EncodeFile(row.Value.(store.File))
	if err != nil {
		return err
	}
	err = s.exec(ctx, `INSERT INTO files
		(seq, id, tenant, purpose, created, expires, bytes, doc, summary)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, row.Key.Number, f.ID, f.Tenant, f.Purpose,
		tables.Micros(f.CreatedAt), tables.MicrosOrNever(f.ExpiresAt), f.Bytes, f.Doc, f.Summary)
	for _, key := range f.Blobs() {
		if err == nil {
			err = s.exec(ctx, "INSERT OR IGNORE INTO file_blobs (blob, file) VALUES (?, ?)", key,
				f.ID)
		}
	}
	return err
}

func addUpload(ctx context.Context, _ *DB, s *session, row store.Row) error {
	u := row.Value.(store.Upload)
	tables.Truncate(&u.CreatedAt, &u.ExpiresAt)
	doc, err := tables.Encode(u)
	if err != nil {
		return err
	}
	return s.exec(ctx, `INSERT INTO uploads (seq, id, tenant, state, expires, doc)
		VALUES (?, ?, ?, ?, ?, ?)`, row.Key.Number, u.ID, u.Tenant, u.State,
		tables.MicrosOrNever(u.ExpiresAt), doc)
}

func addPart(ctx context.Context, _ *DB, s *session, row store.Row) error {
	p := row.Value.(store.Part)
	tables.Truncate(&p.CreatedAt)
	doc, err := tables.Encode(p)
	if err != nil {
		return err
	}
	return s.exec(ctx, `INSERT INTO parts (seq, id, upload, tenant, bytes, doc)
		SELECT ?, ?, id, tenant, ?, ? FROM uploads WHERE id = ?`, row.Key.Number, p.ID, p.Bytes,
		doc, p.UploadID)
}

func addBatch(ctx context.Context, _ *DB, s *session, row store.Row) error {
	b, err := tables.EncodeStoredBatch(row.Value.(store.StoredBatch))
	if err == nil {
		err = s.createBatch(ctx, b, row.Key.Number)
	}
	if err != nil || b.Ended != 0 {
		return err
	}
	for _, key := range tables.InputBlobs(b.Batch) {
		if err := s.exec(ctx, "INSERT OR IGNORE INTO batch_blobs (blob, batch) VALUES (?, ?)",
			key, b.ID); err != nil {
			return err
		}
	}
	return nil
}

func addChunk(ctx context.Context, _ *DB, s *session, row store.Row) error {
	c := row.Value.(store.Chunk)
	usage, err := tables.EncodeTally(c.Tally)
	if err != nil {
		return err
	}
	return s.exec(ctx, `INSERT INTO chunks (`+tables.ChunkColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, c.Batch, c.Index, c.Model, c.First, c.Count,
		c.Epoch, c.Done, c.Tally.Completed, c.Tally.Failed, usage, tables.MicrosOrZero(c.Counted))
}

func addKey(ctx context.Context, _ *DB, s *session, row store.Row) error {
	k := row.Value.(store.StoredKey)
	return s.exec(ctx, `INSERT INTO idempotency_keys (tenant, key, value, expires)
		VALUES (?, ?, ?, ?)`, row.Key.Name, row.Key.Sub, k.Value, tables.Micros(k.ExpiresAt))
}

func addLearned(ctx context.Context, _ *DB, s *session, row store.Row) error {
	l := row.Value.(store.StoredLearned)
	return s.exec(ctx, "INSERT INTO learned (pool, kind, data, saved) VALUES (?, ?, ?, ?)",
		row.Key.Name, row.Key.Sub, append([]byte{}, l.Data...), tables.Micros(l.SavedAt))
}

func addEpoch(ctx context.Context, _ *DB, s *session, row store.Row) error {
	epoch := row.Value.(int64)
	if row.Key.Name == "" {
		return s.exec(ctx, "UPDATE lead_epochs SET newest = ?", epoch)
	}
	return s.exec(ctx, "INSERT INTO locks (name, epoch) VALUES (?, ?)", row.Key.Name, epoch)
}

func addNotice(ctx context.Context, _ *DB, s *session, row store.Row) error {
	n := row.Value.(store.Notice)
	return s.exec(ctx, `INSERT INTO notices (endpoint, batch, id, event, created, attempts, due)
		VALUES (?, ?, ?, ?, ?, ?, ?)`, row.Key.Name, n.Batch, n.ID, n.Event, tables.Micros(n.CreatedAt),
		n.Attempts, tables.MicrosOrNull(n.Due))
}
