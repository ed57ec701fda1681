package postgres

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// CreateFile implements [store.Files].
func (db *DB) CreateFile(ctx context.Context, f store.File) error {
	rows, err := encodeFiles(f)
	if err == nil {
		err = db.write(ctx, rows.create)
	}
	if err != nil {
		return fmt.Errorf("create file %s: %w", f.ID, err)
	}
	return nil
}

// fileRows are the columns of files that are created together.
type fileRows struct {
	ids, tenants, purposes  []string
	created, expires, bytes []int64
	docs, summaries         [][]byte
	blobs, holders          []string // references: the file holders[i] refers to blobs[i]
}

// encodeFiles returns the columns of the files.
func encodeFiles(files ...store.File) (rows fileRows, err error) {
	for _, f := range files {
		row, err := tables.EncodeFile(f)
		if err != nil {
			return rows, err
		}
		rows.ids = append(rows.ids, text(f.ID))
		rows.tenants = append(rows.tenants, text(f.Tenant))
		rows.purposes = append(rows.purposes, text(f.Purpose))
		rows.created = append(rows.created, tables.Micros(f.CreatedAt))
		rows.expires = append(rows.expires, tables.MicrosOrNever(f.ExpiresAt))
		rows.bytes = append(rows.bytes, f.Bytes)
		rows.docs, rows.summaries = append(rows.docs, row.Doc), append(rows.summaries, row.Summary)
		for _, key := range row.Blobs() {
			rows.blobs = append(rows.blobs, text(key))
			rows.holders = append(rows.holders, text(f.ID))
		}
	}
	return rows, nil
}

// create adds the files with their references.
func (r fileRows) create(s *steps) {
	if len(r.ids) == 0 {
		return
	}
	if len(r.blobs) > 0 {
		s.share(lockBlob, r.blobs...)
		s.require(refusedConflict, "its bytes have been dropped", notDropped,
			args{"blobs": r.blobs})
	}
	s.do(`INSERT INTO files (id, tenant, purpose, created, expires, bytes, doc, summary)
		SELECT * FROM unnest(@ids::text[], @tenants::text[], @purposes::text[], @created::bigint[],
			@expires::bigint[], @bytes::bigint[], @docs::bytea[], @summaries::bytea[])`,
		args{"ids": r.ids, "tenants": r.tenants, "purposes": r.purposes, "created": r.created,
			"expires": r.expires, "bytes": r.bytes, "docs": r.docs, "summaries": r.summaries})
	if len(r.blobs) > 0 {
		s.do(`INSERT INTO file_blobs (blob, file)
			SELECT DISTINCT * FROM unnest(@blobs::text[], @holders::text[])`,
			args{"blobs": r.blobs, "holders": r.holders})
	}
}

// UsedBytes implements [store.Files].
func (db *DB) UsedBytes(ctx context.Context, tenant string) (bytes int64, err error) {
	err = db.read(ctx, func(s *steps) {
		s.row("SELECT coalesce(sum(bytes), 0)::bigint FROM usage WHERE tenant = @tenant",
			args{"tenant": text(tenant)}, &bytes)
	})
	if err != nil {
		return 0, fmt.Errorf("read usage of tenant %s: %w", tenant, err)
	}
	return bytes, nil
}

// File implements [store.Files].
func (db *DB) File(ctx context.Context, tenant, id string) (store.File, error) {
	var doc, summary []byte
	err := db.read(ctx, func(s *steps) {
		doc = nil
		s.row(`SELECT doc, summary FROM files WHERE id = @id AND expires > @expiry
			AND (@tenant::text = '' OR tenant = @tenant::text)`,
			args{"id": text(id), "tenant": text(tenant), "expiry": tables.Micros(db.expiry())},
			&doc, &summary)
	})
	var f store.File
	if err == nil {
		f, err = decodeFile(doc, summary)
	}
	if err != nil {
		return store.File{}, fmt.Errorf("load file %s: %w", id, err)
	}
	return f, nil
}

// decodeFile decodes a file that was read. ErrNotFound: there was none.
func decodeFile(doc, summary []byte) (store.File, error) {
	if doc == nil {
		return store.File{}, store.ErrNotFound
	}
	return tables.DecodeFile(doc, summary)
}

// ListFiles implements [store.Files].
func (db *DB) ListFiles(
	ctx context.Context, tenant string, q store.FileQuery,
) (page store.Page[store.File], err error) {
	page, err = db.listFiles(ctx, tenant, q)
	if err != nil {
		return store.Page[store.File]{}, fmt.Errorf("list files: %w", err)
	}
	return page, nil
}

func (db *DB) listFiles(
	ctx context.Context, tenant string, q store.FileQuery,
) (page store.Page[store.File], err error) {
	span := tables.AllTimes()
	if q.After != "" || q.Next != "" {
		after, err := db.fileCursor(ctx, tenant, q)
		if err != nil {
			return page, err
		}
		span.SkipTo(after, q.Ascending)
	}
	all := args{"tenant": text(tenant), "purpose": text(q.Purpose),
		"expiry": tables.Micros(db.expiry()), "limit": limitOrAll(q.Limit),
		"from_at": span.From.At, "from_seq": span.From.Seq,
		"to_at": span.To.At, "to_seq": span.To.Seq}
	query := "SELECT doc, created, seq FROM files WHERE tenant = @tenant AND expires > @expiry"
	if q.Purpose != "" {
		query += " AND purpose = @purpose"
	}
	query += ` AND (created, seq) > (@from_at::bigint, @from_seq::bigint)
		AND (created, seq) < (@to_at::bigint, @to_seq::bigint)`
	if q.Ascending {
		query += " ORDER BY created, seq LIMIT @limit::bigint"
	} else {
		query += " ORDER BY created DESC, seq DESC LIMIT @limit::bigint"
	}
	var found tables.FilePage
	err = db.read(ctx, func(s *steps) {
		found = tables.FilePage{Limit: q.Limit}
		s.rows(query, all, found.Scan)
	})
	return found.Page(), err
}

// fileCursor returns the position after which a page of files starts.
func (db *DB) fileCursor(
	ctx context.Context, tenant string, q store.FileQuery,
) (after tables.Position, err error) {
	if q.Next != "" {
		return tables.ParsePosition(q.Next)
	}
	err = db.read(ctx, func(s *steps) {
		after = tables.Position{}
		s.row(`SELECT created, seq FROM files
			WHERE id = @id AND tenant = @tenant AND expires > @expiry`,
			args{"id": text(q.After), "tenant": text(tenant), "expiry": tables.Micros(db.expiry())},
			&after.At, &after.Seq)
	})
	if err == nil && after.Seq == 0 {
		err = fmt.Errorf("after %s: %w", q.After, store.ErrBadCursor)
	}
	return after, err
}

// DeleteFile implements [store.Files].
func (db *DB) DeleteFile(ctx context.Context, tenant, id string) (store.File, error) {
	var doc, summary []byte
	err := db.write(ctx, func(s *steps) {
		doc = nil
		s.row(`DELETE FROM files WHERE id = @id AND tenant = @tenant AND expires > @expiry
			RETURNING doc, summary`,
			args{"id": text(id), "tenant": text(tenant), "expiry": tables.Micros(db.expiry())},
			&doc, &summary)
	})
	var f store.File
	if err == nil {
		f, err = decodeFile(doc, summary)
	}
	if err != nil {
		return store.File{}, fmt.Errorf("delete file %s: %w", id, err)
	}
	return f, nil
}

// ExpiredFiles implements [store.Files].
func (db *DB) ExpiredFiles(ctx context.Context, limit int) (files []store.File, err error) {
	err = db.read(ctx, func(s *steps) {
		files = nil
		documents(s, &files, `SELECT doc FROM files WHERE expires <= @expiry AND expires < 9223372036854775807
			ORDER BY expires LIMIT @limit`,
			args{"expiry": tables.Micros(db.expiry()), "limit": int64(limit)})
	})
	if err != nil {
		return nil, fmt.Errorf("list expired files: %w", err)
	}
	return files, nil
}

// PurgeFile implements [store.Files].
func (db *DB) PurgeFile(ctx context.Context, id string) error {
	err := db.write(ctx, func(s *steps) {
		s.do("DELETE FROM files WHERE id = @id", args{"id": text(id)})
	})
	if err != nil {
		return fmt.Errorf("purge file %s: %w", id, err)
	}
	return nil
}

// documents appends the decoded only column of a query's rows.
func documents[T any](s *steps, items *[]T, query string, a args) {
	s.rows(query, a, tables.Collect(items, tables.ScanDocument[T]))
}
