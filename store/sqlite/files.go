package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// CreateFile implements [store.Files].
func (db *DB) CreateFile(ctx context.Context, f store.File) error {
	row, err := tables.EncodeFile(f)
	if err == nil {
		err = db.add(ctx, func(s *session) error { return s.createFile(ctx, row) })
	}
	if err != nil {
		return fmt.Errorf("create file %s: %w", f.ID, err)
	}
	return nil
}

func (s *session) createFile(ctx context.Context, f tables.File) error {
	err := s.exec(ctx, `INSERT INTO files (id, tenant, purpose, created, expires, bytes, doc, summary)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		f.ID, f.Tenant, f.Purpose, tables.Micros(f.CreatedAt), tables.MicrosOrNever(f.ExpiresAt),
		f.Bytes, f.Doc, f.Summary)
	if isDuplicate(err) {
		return store.ErrExists
	}
	if err != nil {
		return err
	}
	return s.addReferences(ctx, "INSERT INTO file_blobs (blob, file) VALUES (?, ?)", f.ID,
		f.Blobs()...)
}

// UsedBytes implements [store.Files].
func (db *DB) UsedBytes(ctx context.Context, tenant string) (bytes int64, err error) {
	err = db.read(ctx, func(s *session) error {
		err := s.row(ctx, "SELECT bytes FROM usage WHERE tenant = ?", []any{tenant}, &bytes)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read usage of tenant %s: %w", tenant, err)
	}
	return bytes, nil
}

// File implements [store.Files].
func (db *DB) File(ctx context.Context, tenant, id string) (f store.File, err error) {
	err = db.read(ctx, func(s *session) error {
		f, err = s.file(ctx, tenant, id, tables.Micros(db.expiry()))
		return err
	})
	if err != nil {
		return store.File{}, fmt.Errorf("load file %s: %w", id, err)
	}
	return f, nil
}

func (s *session) file(ctx context.Context, tenant, id string, now int64) (store.File, error) {
	var doc, summary []byte
	query, args := "SELECT doc, summary FROM files WHERE id = ? AND expires > ?", []any{id, now}
	if tenant != "" {
		query, args = query+" AND tenant = ?", append(args, tenant)
	}
	if err := s.row(ctx, query, args, &doc, &summary); err != nil {
		return store.File{}, err
	}
	return tables.DecodeFile(doc, summary)
}

// ListFiles implements [store.Files].
func (db *DB) ListFiles(
	ctx context.Context, tenant string, q store.FileQuery,
) (page store.Page[store.File], err error) {
	err = db.snapshot(ctx, func(s *session) error {
		page, err = s.listFiles(ctx, tenant, q, tables.Micros(db.expiry()))
		return err
	})
	if err != nil {
		return store.Page[store.File]{}, fmt.Errorf("list files: %w", err)
	}
	return page, nil
}

func (s *session) listFiles(
	ctx context.Context, tenant string, q store.FileQuery, now int64,
) (page store.Page[store.File], err error) {
	span := tables.AllTimes()
	if q.After != "" || q.Next != "" {
		after, err := s.fileCursor(ctx, tenant, q, now)
		if err != nil {
			return page, err
		}
		span.SkipTo(after, q.Ascending)
	}
	query, args := "SELECT doc, created, seq FROM files WHERE tenant = ?", []any{tenant}
	if q.Purpose != "" {
		query, args = query+" AND purpose = ?", append(args, q.Purpose)
	}
	query += " AND (created, seq) > (?, ?) AND (created, seq) < (?, ?) AND expires > ?"
	args = append(args, span.From.At, span.From.Seq, span.To.At, span.To.Seq, now)
	if q.Ascending {
		query += " ORDER BY created, seq LIMIT ?"
	} else {
		query += " ORDER BY created DESC, seq DESC LIMIT ?"
	}
	found := tables.FilePage{Limit: q.Limit}
	err = s.rows(ctx, query, append(args, limitOrAll(q.Limit)), found.Scan)
	return found.Page(), err
}

// fileCursor returns the position after which a page of files starts.
func (s *session) fileCursor(
	ctx context.Context, tenant string, q store.FileQuery, now int64,
) (after tables.Position, err error) {
	if q.Next != "" {
		return tables.ParsePosition(q.Next)
	}
	err = s.row(ctx, "SELECT created, seq FROM files WHERE id = ? AND tenant = ? AND expires > ?",
		[]any{q.After, tenant, now}, &after.At, &after.Seq)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("after %s: %w", q.After, store.ErrBadCursor)
	}
	return after, err
}

// DeleteFile implements [store.Files].
func (db *DB) DeleteFile(ctx context.Context, tenant, id string) (f store.File, err error) {
	err = db.write(ctx, func(s *session) error {
		if f, err = s.file(ctx, tenant, id, tables.Micros(db.expiry())); err != nil {
			return err
		}
		if f.Tenant != tenant { // an empty tenant is for reading only
			return store.ErrNotFound
		}
		return s.exec(ctx, "DELETE FROM files WHERE id = ?", id)
	})
	if err != nil {
		return store.File{}, fmt.Errorf("delete file %s: %w", id, err)
	}
	return f, nil
}

// ExpiredFiles implements [store.Files].
func (db *DB) ExpiredFiles(ctx context.Context, limit int) (files []store.File, err error) {
	err = db.read(ctx, func(s *session) error {
		files, err = documents[store.File](ctx, s,
			"SELECT doc FROM files WHERE expires <= ? ORDER BY expires LIMIT ?",
			tables.Micros(db.expiry()), limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list expired files: %w", err)
	}
	return files, nil
}

// PurgeFile implements [store.Files].
func (db *DB) PurgeFile(ctx context.Context, id string) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(ctx, "DELETE FROM files WHERE id = ?", id)
	})
	if err != nil {
		return fmt.Errorf("purge file %s: %w", id, err)
	}
	return nil
}

// documents decodes the only column of a query's rows.
func documents[T any](
	ctx context.Context, s *session, query string, args ...any,
) (items []T, err error) {
	err = s.rows(ctx, query, args, tables.Collect(&items, tables.ScanDocument[T]))
	return items, err
}
