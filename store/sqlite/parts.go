package sqlite

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// AddPart implements [store.UploadParts].
func (db *DB) AddPart(ctx context.Context, p store.Part) error {
	tables.Truncate(&p.CreatedAt)
	doc, err := tables.Encode(p)
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
		if isDuplicate(err) {
			return store.ErrExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("add part %s to upload %s: %w", p.ID, p.UploadID, err)
	}
	return nil
}

// Parts implements [store.UploadParts].
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

// SumParts implements [store.UploadParts].
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

// DropParts implements [store.UploadParts].
func (db *DB) DropParts(ctx context.Context, uploadID string) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(ctx, "DELETE FROM parts WHERE upload = ?", uploadID)
	})
	if err != nil {
		return fmt.Errorf("drop parts of upload %s: %w", uploadID, err)
	}
	return nil
}
