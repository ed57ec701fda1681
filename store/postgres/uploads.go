package postgres

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
	if err == nil {
		err = db.write(ctx, func(s *steps) {
			s.do(`INSERT INTO uploads (id, tenant, state, file, expires, doc)
				VALUES (@id, @tenant, @state, @file, @expires, @doc)`,
				args{"id": text(u.ID), "tenant": text(u.Tenant), "state": string(u.State),
					"file": text(u.FileID), "expires": tables.MicrosOrNever(u.ExpiresAt),
					"doc": doc})
		})
	}
	if err != nil {
		return fmt.Errorf("create upload %s: %w", u.ID, err)
	}
	return nil
}

// uploadColumns are those of uploadRow. The state and the file change after the document was
// written.
const uploadColumns = "state, file, doc"

type uploadRow struct {
	state, file string
	doc         []byte
}

func (r *uploadRow) columns() []any { return []any{&r.state, &r.file, &r.doc} }

// decode returns the upload of a row that was read. An upload that is pending reads as expired when
// its time has passed; the row stays pending. ErrNotFound: no row was read.
func (db *DB) decodeUpload(r uploadRow) (store.Upload, error) {
	if r.doc == nil {
		return store.Upload{}, store.ErrNotFound
	}
	u, err := tables.Decode[store.Upload](r.doc)
	u.State, u.FileID = store.UploadState(r.state), r.file
	return tables.AtExpiry(u, db.expiry()), err
}

// Upload implements [store.Uploads].
func (db *DB) Upload(ctx context.Context, tenant, id string) (store.Upload, error) {
	var row uploadRow
	err := db.read(ctx, func(s *steps) {
		row = uploadRow{}
		s.row("SELECT "+uploadColumns+` FROM uploads WHERE id = @id
			AND (@tenant::text = '' OR tenant = @tenant::text)`,
			args{"id": text(id), "tenant": text(tenant)}, row.columns()...)
	})
	var u store.Upload
	if err == nil {
		u, err = db.decodeUpload(row)
	}
	if err != nil {
		return store.Upload{}, fmt.Errorf("load upload %s: %w", id, err)
	}
	return u, nil
}

// CountPending implements [store.Uploads].
func (db *DB) CountPending(ctx context.Context, tenant string) (n int, err error) {
	err = db.read(ctx, func(s *steps) {
		s.row(`SELECT count(*) FROM uploads
			WHERE state = 'pending' AND tenant = @tenant AND expires > @expiry`,
			args{"tenant": text(tenant), "expiry": tables.Micros(db.expiry())}, &n)
	})
	if err != nil {
		return 0, fmt.Errorf("count pending uploads: %w", err)
	}
	return n, nil
}

// CompleteUpload implements [store.Uploads].
func (db *DB) CompleteUpload(
	ctx context.Context, tenant, id string, f store.File,
) (store.Upload, error) {
	rows, err := encodeFiles(f)
	var u store.Upload
	if err == nil {
		u, err = db.endUpload(ctx, tenant, id, store.UploadCompleted, f.ID, rows)
	}
	if err != nil {
		return store.Upload{}, fmt.Errorf("complete upload %s: %w", id, err)
	}
	return u, nil
}

// CancelUpload implements [store.Uploads].
func (db *DB) CancelUpload(ctx context.Context, tenant, id string) (store.Upload, error) {
	u, err := db.endUpload(ctx, tenant, id, store.UploadCancelled, "", fileRows{})
	if err != nil {
		return store.Upload{}, fmt.Errorf("cancel upload %s: %w", id, err)
	}
	return u, nil
}

// endUpload writes the final state of a pending upload, and creates the files.
func (db *DB) endUpload(
	ctx context.Context, tenant, id string, to store.UploadState, fileID string, files fileRows,
) (store.Upload, error) {
	var row uploadRow
	all := args{"id": text(id), "tenant": text(tenant), "state": string(to), "file": text(fileID),
		"expiry": tables.Micros(db.expiry())}
	err := db.write(ctx, func(s *steps) {
		row = uploadRow{}
		s.require(refusedNotFound, "there is none",
			"EXISTS (SELECT 1 FROM uploads WHERE id = @id AND tenant = @tenant)", all)
		s.change(refusedConflict, "it is over", `UPDATE uploads SET state = @state, file = @file
			WHERE id = @id AND tenant = @tenant AND state = 'pending' AND expires > @expiry`, all)
		s.row("SELECT "+uploadColumns+" FROM uploads WHERE id = @id", all, row.columns()...)
		files.create(s)
	})
	if err != nil {
		return store.Upload{}, err
	}
	return db.decodeUpload(row)
}

// StaleUploads implements [store.Uploads].
func (db *DB) StaleUploads(ctx context.Context, limit int) (uploads []store.Upload, err error) {
	err = db.read(ctx, func(s *steps) {
		uploads = nil
		s.rows("SELECT "+uploadColumns+` FROM uploads AS u
			WHERE EXISTS (SELECT 1 FROM parts WHERE upload = u.id)
			AND (state <> 'pending' OR expires <= @expiry) ORDER BY seq LIMIT @limit`,
			args{"expiry": tables.Micros(db.expiry()), "limit": int64(limit)},
			func(from tables.Row) error {
				var row uploadRow
				if err := from.Scan(row.columns()...); err != nil {
					return err
				}
				u, err := db.decodeUpload(row)
				uploads = append(uploads, u)
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("list stale uploads: %w", err)
	}
	return uploads, nil
}

// PurgeUploads implements [store.Uploads].
func (db *DB) PurgeUploads(
	ctx context.Context, expiredBefore time.Time, limit int,
) (int, error) {
	var purged int64
	err := db.write(ctx, func(s *steps) {
		s.affect(&purged, `DELETE FROM uploads WHERE seq IN (SELECT seq FROM uploads AS u
			WHERE expires < @before AND NOT EXISTS (SELECT 1 FROM parts WHERE upload = u.id)
			ORDER BY expires LIMIT @limit FOR UPDATE SKIP LOCKED)`,
			args{"before": tables.Micros(expiredBefore), "limit": int64(limit)})
	})
	if err != nil {
		return 0, fmt.Errorf("purge uploads that expired before %s: %w",
			expiredBefore.Format(time.RFC3339), err)
	}
	return int(purged), nil
}
