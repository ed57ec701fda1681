package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// CreateUpload implements [store.Uploads].
func (db *DB) CreateUpload(ctx context.Context, u store.Upload) error {
	tables.Truncate(&u.CreatedAt, &u.ExpiresAt)
	doc, err := tables.Encode(u)
	if err != nil {
		return fmt.Errorf("create upload %s: %w", u.ID, err)
	}
	err = db.add(ctx, func(s *session) error {
		err := s.exec(
			ctx, "INSERT INTO uploads (id, tenant, state, expires, doc) VALUES (?, ?, ?, ?, ?)",
			u.ID, u.Tenant, u.State, tables.MicrosOrNever(u.ExpiresAt), doc)
		if isDuplicate(err) {
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
	u, err := tables.Decode[store.Upload](doc)
	return tables.AtExpiry(u, db.expiry()), err
}

// CountPending implements [store.Uploads].
func (db *DB) CountPending(ctx context.Context, tenant string) (n int, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.row(ctx, `SELECT count(*) FROM uploads
			WHERE state = 'pending' AND tenant = ? AND expires > ?`, []any{tenant, tables.Micros(db.expiry())}, &n)
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
	row, err := tables.EncodeFile(f)
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

// endUpload writes the final state of a pending upload.
func (db *DB) endUpload(
	ctx context.Context, s *session, tenant, id string, to store.UploadState, fileID string,
) (store.Upload, error) {
	u, err := db.upload(ctx, s, tenant, id)
	if err != nil {
		return u, err
	}
	if u.Tenant != tenant { // an empty tenant is for reading only
		return u, store.ErrNotFound
	}
	if u.State != store.UploadPending {
		return u, fmt.Errorf("it is %s: %w", u.State, store.ErrConflict)
	}
	u.State, u.FileID = to, fileID
	doc, err := tables.Encode(u)
	if err != nil {
		return u, err
	}
	return u, s.exec(ctx, "UPDATE uploads SET state = ?, doc = ? WHERE id = ?", u.State, doc, id)
}

// StaleUploads implements [store.Uploads].
func (db *DB) StaleUploads(ctx context.Context, limit int) (uploads []store.Upload, err error) {
	err = db.read(ctx, func(s *session) error {
		uploads, err = documents[store.Upload](ctx, s, `SELECT doc FROM uploads
			WHERE id IN (SELECT upload FROM parts) AND (state <> 'pending' OR expires <= ?)
			ORDER BY seq LIMIT ?`,
			tables.Micros(db.expiry()), limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list stale uploads: %w", err)
	}
	for i := range uploads {
		uploads[i] = tables.AtExpiry(uploads[i], db.expiry())
	}
	return uploads, nil
}

// PurgeUploads implements [store.Uploads].
func (db *DB) PurgeUploads(
	ctx context.Context, expiredBefore time.Time, limit int,
) (n int, err error) {
	err = db.write(ctx, func(s *session) error {
		purged, err := s.affect(ctx, `DELETE FROM uploads WHERE seq IN (SELECT seq FROM uploads AS u
			WHERE expires < ? AND NOT EXISTS (SELECT 1 FROM parts WHERE upload = u.id)
			ORDER BY expires LIMIT ?)`,
			tables.Micros(expiredBefore), limit)
		n = int(purged)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("purge uploads that expired before %s: %w",
			expiredBefore.Format(time.RFC3339), err)
	}
	return n, nil
}
