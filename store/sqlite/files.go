package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/tidefill/tidefill/store"
)

// CreateFile implements [store.Files].
func (db *DB) CreateFile(ctx context.Context, f store.File) error {
	whole(&f.CreatedAt, &f.ExpiresAt)
	doc, err := encode(f)
	if err != nil {
		return fmt.Errorf("create file %s: %w", f.ID, err)
	}
	err = db.write(ctx, func(s *session) error { return s.createFile(ctx, f, doc) })
	if err != nil {
		return fmt.Errorf("create file %s: %w", f.ID, err)
	}
	return nil
}

func (s *session) createFile(ctx context.Context, f store.File, doc []byte) error {
	err := s.exec(ctx, "INSERT INTO files (id, tenant, purpose, created, expires, doc) VALUES (?, ?, ?, ?, ?, ?)",
		f.ID, f.Tenant, f.Purpose, micros(f.CreatedAt), microsOrNever(f.ExpiresAt), doc)
	if taken(err) {
		return store.ErrExists
	}
	if err != nil {
		return err
	}
	return s.refer(ctx, "INSERT INTO file_blobs (blob, file) VALUES (?, ?)", f.ID, f.BlobKey, f.IndexKey)
}

// File implements [store.Files].
func (db *DB) File(ctx context.Context, tenant, id string) (f store.File, err error) {
	err = db.read(ctx, func(s *session) error {
		f, err = s.file(ctx, tenant, id, micros(db.now()))
		return err
	})
	if err != nil {
		return store.File{}, fmt.Errorf("load file %s: %w", id, err)
	}
	return f, nil
}

func (s *session) file(ctx context.Context, tenant, id string, now int64) (store.File, error) {
	var doc []byte
	query, args := "SELECT doc FROM files WHERE id = ? AND expires > ?", []any{id, now}
	if tenant != "" {
		query, args = query+" AND tenant = ?", append(args, tenant)
	}
	if err := s.row(ctx, query, args, &doc); err != nil {
		return store.File{}, err
	}
	return decode[store.File](doc)
}

// ListFiles implements [store.Files].
func (db *DB) ListFiles(ctx context.Context, tenant string, q store.FileQuery) (page store.Page[store.File], err error) {
	err = db.snapshot(ctx, func(s *session) error {
		page, err = s.listFiles(ctx, tenant, q, micros(db.now()))
		return err
	})
	if err != nil {
		return store.Page[store.File]{}, fmt.Errorf("list files: %w", err)
	}
	return page, nil
}

func (s *session) listFiles(ctx context.Context, tenant string, q store.FileQuery, now int64) (page store.Page[store.File], err error) {
	from, to := position{math.MinInt64, 0}, position{math.MaxInt64, math.MaxInt64}
	if q.After != "" {
		var after position
		err := s.row(ctx, "SELECT created, seq FROM files WHERE id = ? AND tenant = ? AND expires > ?",
			[]any{q.After, tenant, now}, &after.at, &after.seq)
		if errors.Is(err, store.ErrNotFound) {
			return page, fmt.Errorf("after %s: %w", q.After, store.ErrBadCursor)
		} else if err != nil {
			return page, err
		}
		if q.Ascending {
			from = after
		} else {
			to = after
		}
	}
	query, args := "SELECT doc FROM files WHERE tenant = ?", []any{tenant}
	if q.Purpose != "" {
		query, args = query+" AND purpose = ?", append(args, q.Purpose)
	}
	query += " AND (created, seq) > (?, ?) AND (created, seq) < (?, ?) AND expires > ?"
	args = append(args, from.at, from.seq, to.at, to.seq, now)
	if q.Ascending {
		query += " ORDER BY created, seq LIMIT ?"
	} else {
		query += " ORDER BY created DESC, seq DESC LIMIT ?"
	}
	page.Items, err = documents[store.File](ctx, s, query, append(args, limitOrAll(q.Limit))...)
	if q.Limit > 0 && len(page.Items) > q.Limit {
		page.Items, page.More = page.Items[:q.Limit], true
	}
	return page, err
}

// DeleteFile implements [store.Files].
func (db *DB) DeleteFile(ctx context.Context, tenant, id string) (f store.File, err error) {
	err = db.write(ctx, func(s *session) error {
		if f, err = s.file(ctx, tenant, id, micros(db.now())); err != nil {
			return err
		}
		if f.Tenant != tenant { // none was given; that is for reading
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
		files, err = documents[store.File](ctx, s, "SELECT doc FROM files WHERE expires <= ? ORDER BY expires LIMIT ?",
			micros(db.now()), limit)
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
func documents[T any](ctx context.Context, s *session, query string, args ...any) (items []T, err error) {
	var doc sql.RawBytes
	err = s.rows(ctx, query, args, func(rows *sql.Rows) error {
		if err := rows.Scan(&doc); err != nil {
			return err
		}
		item, err := decode[T](doc)
		items = append(items, item)
		return err
	})
	return items, err
}
