package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

// CreateUpload implements [store.Uploads].
func (db *DB) CreateUpload(ctx context.Context, u store.Upload) error {
	whole(&u.CreatedAt, &u.ExpiresAt)
	doc, err := encode(u)
	if err != nil {
		return fmt.Errorf("create upload %s: %w", u.ID, err)
	}
	err = db.add(ctx, func(s *session) error {
		err := s.exec(
			ctx, "INSERT INTO uploads (id, tenant, state, expires, doc) VALUES (?, ?, ?, ?, ?)",
			u.ID, u.Tenant, u.State, microsOrNever(u.ExpiresAt), doc)
		if taken(err) {
			return store.ErrExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create upload %s: %w", u.ID, err)
	}
	return nil
}

// Upload implements [store.Uploads].
func (db *DB) Upload(ctx context.Context, tenant, id string) (u store.Upload, err error) {
	err = db.read(ctx, func(s *session) error {
		u, err = db.upload(ctx, s, tenant, id)
		return err
	})
	if err != nil {
		return store.Upload{}, fmt.Errorf("load upload %s: %w", id, err)
	}
	return u, nil
}

func (db *DB) upload(ctx context.Context, s *session, tenant, id string) (store.Upload, error) {
	var doc []byte
	query, args := "SELECT doc FROM uploads WHERE id = ?", []any{id}
	if tenant != "" {
		query, args = query+" AND tenant = ?", append(args, tenant)
	}
	if err := s.row(ctx, query, args, &doc); err != nil {
		return store.Upload{}, err
	}
	u, err := decode[store.Upload](doc)
	return db.judged(u), err
}

// judged shows a pending upload whose time is over as expired; nothing else marks it so.
func (db *DB) judged(u store.Upload) store.Upload {
	if u.State == store.UploadPending && !u.ExpiresAt.IsZero() && !u.ExpiresAt.After(db.expiry()) {
		u.State = store.UploadExpired
	}
	return u
}

// CountPending implements [store.Uploads].
func (db *DB) CountPending(ctx context.Context, tenant string) (n int, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.row(
			ctx, "SELECT count(*) FROM uploads WHERE state = 'pending' AND tenant = ? AND expires > ?",
			[]any{tenant, micros(db.expiry())}, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("count pending uploads: %w", err)
	}
	return n, nil
}

// CompleteUpload implements [store.Uploads].
func (db *DB) CompleteUpload(
	ctx context.Context, tenant, id string, f store.File,
) (u store.Upload, err error) {
	row, err := encodeFile(f)
	if err == nil {
		err = db.write(ctx, func(s *session) error {
			if u, err = db.endUpload(ctx, s, tenant, id, store.UploadCompleted, f.ID); err != nil {
				return err
			}
			return s.createFile(ctx, row)
		})
	}
	if err != nil {
		return store.Upload{}, fmt.Errorf("complete upload %s: %w", id, err)
	}
	return u, nil
}

// CancelUpload implements [store.Uploads].
func (db *DB) CancelUpload(ctx context.Context, tenant, id string) (u store.Upload, err error) {
	err = db.write(ctx, func(s *session) error {
		u, err = db.endUpload(ctx, s, tenant, id, store.UploadCancelled, "")
		return err
	})
	if err != nil {
		return store.Upload{}, fmt.Errorf("cancel upload %s: %w", id, err)
	}
	return u, nil
}

func (db *DB) endUpload(
	ctx context.Context, s *session, tenant, id string, to store.UploadState, fileID string,
) (store.Upload, error) {
	u, err := db.upload(ctx, s, tenant, id)
	if err != nil {
		return u, err
	}
	if u.Tenant != tenant { // none was given; that is for reading
		return u, store.ErrNotFound
	}
	if u.State != store.UploadPending {
		return u, fmt.Errorf("it is %s: %w", u.State, store.ErrConflict)
	}
	u.State, u.FileID = to, fileID
	doc, err := encode(u)
	if err != nil {
		return u, err
	}
	return u, s.exec(ctx, "UPDATE uploads SET state = ?, doc = ? WHERE id = ?", u.State, doc, id)
}

// AddPart implements [store.Uploads].
func (db *DB) AddPart(ctx context.Context, p store.Part) error {
	whole(&p.CreatedAt)
	doc, err := encode(p)
	if err != nil {
		return fmt.Errorf("add part %s: %w", p.ID, err)
	}
	err = db.add(ctx, func(s *session) error {
		u, err := db.upload(ctx, s, "", p.UploadID)
		if err != nil {
			return err
		}
		if u.State != store.UploadPending {
			return fmt.Errorf("it is %s: %w", u.State, store.ErrConflict)
		}
		err = s.exec(
			ctx, "INSERT INTO parts (id, upload, tenant, bytes, doc) VALUES (?, ?, ?, ?, ?)", p.ID,
			p.UploadID, u.Tenant, p.Bytes, doc)
		if taken(err) {
			return store.ErrExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("add part %s to upload %s: %w", p.ID, p.UploadID, err)
	}
	return nil
}

// Parts implements [store.Uploads].
func (db *DB) Parts(ctx context.Context, uploadID string) (parts []store.Part, err error) {
	err = db.read(ctx, func(s *session) error {
		parts, err = documents[store.Part](ctx, s,
			"SELECT doc FROM parts WHERE upload = ? ORDER BY seq", uploadID)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list parts of upload %s: %w", uploadID, err)
	}
	return parts, nil
}

// SumParts implements [store.Uploads].
func (db *DB) SumParts(ctx context.Context, uploadID string) (parts int, bytes int64, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.row(ctx, "SELECT count(*), coalesce(sum(bytes), 0) FROM parts WHERE upload = ?",
			[]any{uploadID}, &parts, &bytes)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("sum parts of upload %s: %w", uploadID, err)
	}
	return parts, bytes, nil
}

// StaleUploads implements [store.Uploads].
func (db *DB) StaleUploads(ctx context.Context, limit int) (uploads []store.Upload, err error) {
	err = db.read(ctx, func(s *session) error {
		uploads, err = documents[store.Upload](ctx, s, `SELECT doc FROM uploads
			WHERE id IN (SELECT upload FROM parts) AND (state <> 'pending' OR expires <= ?) ORDER BY seq LIMIT ?`,
			micros(db.expiry()), limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list stale uploads: %w", err)
	}
	for i := range uploads {
		uploads[i] = db.judged(uploads[i])
	}
	return uploads, nil
}

// DropParts implements [store.Uploads].
func (db *DB) DropParts(ctx context.Context, uploadID string) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(ctx, "DELETE FROM parts WHERE upload = ?", uploadID)
	})
	if err != nil {
		return fmt.Errorf("drop parts of upload %s: %w", uploadID, err)
	}
	return nil
}

// PurgeUploads implements [store.Uploads].
func (db *DB) PurgeUploads(
	ctx context.Context, expiredBefore time.Time, limit int,
) (n int, err error) {
	err = db.write(ctx, func(s *session) error {
		purged, err := s.affect(ctx, `DELETE FROM uploads WHERE seq IN (SELECT seq FROM uploads AS u
			WHERE expires < ? AND NOT EXISTS (SELECT 1 FROM parts WHERE upload = u.id) ORDER BY expires LIMIT ?)`,
			micros(expiredBefore), limit)
		n = int(purged)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("purge uploads that expired before %s: %w",
			expiredBefore.Format(time.RFC3339), err)
	}
	return n, nil
}
