package postgres

import (
	"context"
	"fmt"
	"iter"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// portable reads and writes rows of one kind.
type portable struct {
	query  string
	scan   func(tables.Row) (store.Row, error)
	remove string // the statement that removes the keys @names, @subs, @thirds and @numbers
	add    func(*DB, *steps, store.Row) error
}

// raw is the expression of the bytes that text has encoded.
func raw(column string) string {
	return `CASE WHEN starts_with(` + column + `, '\x') THEN decode(substr(` + column +
		`, 3), 'hex') ELSE convert_to(` + column + `, 'UTF8') END`
}

// numbered is the statement that removes rows by their number.
func numbered(table string) string {
	return "DELETE FROM " + table + " WHERE seq = ANY (@numbers::bigint[])"
}

// named is the statement that removes rows by two names.
func named(table, name, sub string) string {
	return "DELETE FROM " + table + " WHERE (" + name + ", " + sub + `) IN
		(SELECT * FROM unnest(@names::text[], @subs::text[]))`
}

var portables = map[store.RowKind]portable{
	store.FileRows: {"SELECT seq, doc, summary FROM files ORDER BY seq", tables.ExportFile,
		numbered("files"), addFile},
	store.UploadRows: {"SELECT seq, " + uploadColumns + " FROM uploads ORDER BY seq", scanUpload,
		numbered("uploads"), addUpload},
	store.PartRows: {"SELECT seq, doc FROM parts ORDER BY seq", tables.ExportDocument[store.Part],
		numbered("parts"), addPart},
	store.BatchRows: {`SELECT b.seq, b.doc, b.ended, p.doc FROM batches AS b
		LEFT JOIN batch_parameters AS p ON p.batch = b.seq ORDER BY b.seq`, tables.ExportBatch,
		numbered("batches"), addBatch},
	store.ChunkRows: {"SELECT " + tables.ChunkColumns + ` FROM chunks ORDER BY ` + raw("batch") + `, idx`, tables.ExportChunk,
		`DELETE FROM chunks WHERE (batch, idx) IN
			(SELECT * FROM unnest(@names::text[], @numbers::bigint[]))`, addChunk},
	store.KeyRows: {`SELECT tenant, key, value, expires FROM idempotency_keys
		ORDER BY ` + raw("tenant") + ", " + raw("key"), tables.ExportKey,
		named("idempotency_keys", "tenant", "key"), addKey},
	store.LearnedRows: {`SELECT pool, kind, data, saved FROM learned
		ORDER BY ` + raw("pool") + ", " + raw("kind"), tables.ExportLearned,
		named("learned", "pool", "kind"), addLearned},
	store.EpochRows: {`SELECT * FROM (SELECT '' AS name, last_value AS epoch FROM lead_epochs
			WHERE is_called UNION ALL SELECT name, epoch FROM locks) AS epochs
		ORDER BY ` + raw("name"), tables.ExportEpoch,
		"DELETE FROM locks WHERE name = ANY (@names::text[])", addEpoch},
	store.NoticeRows: {`SELECT endpoint, id, batch, event, created, attempts, due FROM notices
		ORDER BY ` + raw("endpoint") + ", " + raw("batch"), tables.ExportNotice,
		named("notices", "endpoint", "batch"), addNotice},
	store.HourRows: {`SELECT ` + tables.PoolHourColumns + ` FROM pool_hours
		ORDER BY ` + raw("pool") + `, hour`, tables.ExportPoolHour,
		`DELETE FROM pool_hours WHERE (pool, hour) IN
			(SELECT * FROM unnest(@names::text[], @numbers::bigint[]))`,
		func(_ *DB, s *steps, row store.Row) error {
			s.do(insertPoolHour, poolHourArguments(row.Value.(store.PoolHour), "", 0))
			return nil
		}},
	store.UsageRows: {`SELECT ` + tables.UsedSums + ` FROM ledger ` +
		usedRows, tables.ExportUsed,
		`DELETE FROM ledger WHERE (tenant, model, class, hour) IN (SELECT * FROM
			unnest(@names::text[], @subs::text[], @thirds::text[], @numbers::bigint[]))`,
		func(_ *DB, s *steps, row store.Row) error {
			s.do(insertUsed, usedArguments(row.Value.(store.Used), store.Owner{}, 0))
			return nil
		}},
	store.KeyUseRows: {tables.SelectKeyUses + raw("hash"), tables.ExportKeyUse,
		"DELETE FROM key_uses WHERE hash = ANY (@names::text[])",
		func(_ *DB, s *steps, row store.Row) error {
			s.noteKeys(row.Value.(store.KeyUse))
			return nil
		}},
}

// ExportRows implements [store.Portable]. It holds one connection until it ends, and has no limit
// of time.
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
	rows, err := db.pool.Query(ctx, p.query)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := p.scan(plainRow{rows})
		if err != nil {
			return false, err
		}
		if !yield(row, nil) {
			return true, nil
		}
	}
	return false, rows.Err()
}

// ImportRows implements [store.Portable].
func (db *DB) ImportRows(
	ctx context.Context, kind store.RowKind, rows []store.Row, removed []store.RowKey,
) error {
	p, ok := portables[kind]
	if !ok {
		return fmt.Errorf("import rows: %q is no kind of rows", kind)
	}
	names, subs, thirds, numbers := []string{}, []string{}, []string{}, []int64{}
	gone := func(k store.RowKey) {
		names, subs = append(names, text(k.Name)), append(subs, text(k.Sub))
		thirds, numbers = append(thirds, text(k.Third)), append(numbers, k.Number)
	}
	for _, k := range removed {
		gone(k)
	}
	for _, row := range rows {
		gone(row.Key)
	}
	var fault error
	err := db.write(ctx, func(s *steps) {
		s.do(p.remove, args{"names": names, "subs": subs, "thirds": thirds,
			"numbers": numbers})
		for _, row := range rows {
			if fault = p.add(db, s, row); fault != nil {
				s.require(refusedConflict, "it can't be encoded", "false", nil)
				return
			}
		}
	})
	if fault != nil {
		err = fault
	}
	if err != nil {
		return fmt.Errorf("import %d %s: %w", len(rows), kind, err)
	}
	return nil
}

func addFile(_ *DB, s *steps, row store.Row) error {
	f := row.Value.(store.File)
	r, err := encodeFiles(f)
	if err != nil {
		return err
	}
	s.do(`INSERT INTO files (seq, id, tenant, purpose, created, expires, bytes, doc, summary)
		OVERRIDING SYSTEM VALUE
		VALUES (@seq, @id, @tenant, @purpose, @created, @expires, @bytes, @doc, @summary)`,
		args{"seq": row.Key.Number, "id": r.ids[0], "tenant": r.tenants[0],
			"purpose": r.purposes[0], "created": r.created[0], "expires": r.expires[0],
			"bytes": r.bytes[0], "doc": r.docs[0], "summary": r.summaries[0]})
	if len(r.blobs) > 0 {
		s.do(`INSERT INTO file_blobs (blob, file)
			SELECT DISTINCT * FROM unnest(@blobs::text[], @holders::text[])`,
			args{"blobs": r.blobs, "holders": r.holders})
	}
	return nil
}

func scanUpload(from tables.Row) (row store.Row, err error) {
	var r uploadRow
	if err := from.Scan(append([]any{&row.Key.Number}, r.columns()...)...); err != nil {
		return row, err
	}
	u, err := tables.Decode[store.Upload](r.doc)
	u.State, u.FileID = store.UploadState(r.state), r.file
	row.Value = u
	return row, err
}

func addUpload(_ *DB, s *steps, row store.Row) error {
	u := row.Value.(store.Upload)
	tables.Truncate(&u.CreatedAt, &u.ExpiresAt)
	doc, err := tables.Encode(u)
	if err == nil {
		s.do(`INSERT INTO uploads (seq, id, tenant, state, file, expires, doc)
			OVERRIDING SYSTEM VALUE
			VALUES (@seq, @id, @tenant, @state, @file, @expires, @doc)`,
			args{"seq": row.Key.Number, "id": text(u.ID), "tenant": text(u.Tenant),
				"state": string(u.State), "file": text(u.FileID),
				"expires": tables.MicrosOrNever(u.ExpiresAt), "doc": doc})
	}
	return err
}

func addPart(_ *DB, s *steps, row store.Row) error {
	p := row.Value.(store.Part)
	tables.Truncate(&p.CreatedAt)
	doc, err := tables.Encode(p)
	if err == nil {
		s.do(`INSERT INTO parts (seq, id, upload, tenant, bytes, doc) OVERRIDING SYSTEM VALUE
			SELECT @seq::bigint, @id::text, id, tenant, @bytes::bigint, @doc::bytea FROM uploads
			WHERE id = @upload`,
			args{"seq": row.Key.Number, "id": text(p.ID), "upload": text(p.UploadID),
				"bytes": p.Bytes, "doc": doc})
	}
	return err
}

func addBatch(db *DB, s *steps, row store.Row) error {
	b := row.Value.(store.StoredBatch)
	encoded, err := tables.EncodeStoredBatch(b)
	if err != nil {
		return err
	}
	r := batchRow{encoded}
	all := r.arguments()
	all["seq"] = row.Key.Number
	s.do(`INSERT INTO batches
		(seq, id, tenant, version, state, created, due, ended, timeline, changed, doc)
		OVERRIDING SYSTEM VALUE
		VALUES (@seq, @id, @tenant, @version, @state, @created, @due, @ended, tidefill_timeline(),
			pg_current_xact_id(), @doc)`, all)
	s.describeBatch(r, all)
	if r.Ended == 0 {
		s.do(`INSERT INTO batch_blobs (blob, batch)
			SELECT DISTINCT blob, @id::text FROM unnest(@blobs::text[]) AS blob`,
			args{"id": text(b.ID), "blobs": texts(tables.InputBlobs(b.Batch))})
	}
	return nil
}

func addChunk(_ *DB, s *steps, row store.Row) error {
	c := row.Value.(store.Chunk)
	usage, err := tables.EncodeTally(c.Tally)
	if err == nil {
		s.do(`INSERT INTO chunks
			(`+tables.ChunkColumns+`)
			VALUES (@batch, @idx, @model, @first, @count, @epoch, @done, @completed, @failed,
				@usage, @counted)`,
			args{"batch": text(c.Batch), "idx": int64(c.Index), "model": text(c.Model),
				"first": int64(c.First), "count": int64(c.Count), "epoch": c.Epoch, "done": c.Done,
				"completed": int64(c.Tally.Completed), "failed": int64(c.Tally.Failed),
				"usage": usage, "counted": tables.MicrosOrZero(c.Counted)})
	}
	return err
}

func addKey(_ *DB, s *steps, row store.Row) error {
	k := row.Value.(store.StoredKey)
	s.do(`INSERT INTO idempotency_keys (tenant, key, value, expires)
		VALUES (@tenant, @key, @value, @expires)`,
		args{"tenant": text(row.Key.Name), "key": text(row.Key.Sub), "value": text(k.Value),
			"expires": tables.Micros(k.ExpiresAt)})
	return nil
}

func addLearned(_ *DB, s *steps, row store.Row) error {
	l := row.Value.(store.StoredLearned)
	s.do("INSERT INTO learned (pool, kind, data, saved) VALUES (@pool, @kind, @data, @saved)",
		args{"pool": text(row.Key.Name), "kind": text(row.Key.Sub), "data": l.Data,
			"saved": tables.Micros(l.SavedAt)})
	return nil
}

func addEpoch(_ *DB, s *steps, row store.Row) error {
	all := args{"name": text(row.Key.Name), "epoch": row.Value.(int64)}
	if row.Key.Name == "" {
		s.do("SELECT setval('lead_epochs', @epoch::bigint)", all)
	} else {
		s.do("INSERT INTO locks (name, epoch) VALUES (@name, @epoch)", all)
	}
	return nil
}

func addNotice(_ *DB, s *steps, row store.Row) error {
	n := row.Value.(store.Notice)
	s.do(`INSERT INTO notices (endpoint, batch, id, event, created, attempts, due)
		VALUES (@endpoint, @batch, @id, @event, @created, @attempts, @due)`,
		args{"endpoint": text(row.Key.Name), "batch": text(n.Batch), "id": text(n.ID),
			"event": text(n.Event), "created": tables.Micros(n.CreatedAt),
			"attempts": int64(n.Attempts), "due": tables.MicrosOrNull(n.Due)})
	return nil
}
