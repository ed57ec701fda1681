package postgres

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
	all := args{"id": text(p.ID), "upload": text(p.UploadID), "bytes": p.Bytes, "doc": doc,
		"expiry": tables.Micros(db.expiry())}
	err = db.write(ctx, func(s *steps) {
		// The lock of the row excludes the end of the upload, not other parts.
		s.do("SELECT 1 FROM uploads WHERE id = @upload FOR SHARE", all)
		s.require(refusedNotFound, "there is none",
			"EXISTS (SELECT 1 FROM uploads WHERE id = @upload)", all)
		s.require(refusedConflict, "it is over", `EXISTS (SELECT 1 FROM uploads
			WHERE id = @upload AND state = 'pending' AND expires > @expiry)`, all)
		s.do(`INSERT INTO parts (id, upload, tenant, bytes, doc)
			SELECT @id, id, tenant, @bytes, @doc FROM uploads WHERE id = @upload`, all)
	})
	if err != nil {
		return fmt.Errorf("add part %s to upload %s: %w", p.ID, p.UploadID, err)
	}
	return nil
}

// Parts implements [store.UploadParts].
func (db *DB) Parts(ctx context.Context, uploadID string) (parts []store.Part, err error) {
	err = db.read(ctx, func(s *steps) {
		parts = nil
		documents(s, &parts, "SELECT doc FROM parts WHERE upload = @upload ORDER BY seq",
			args{"upload": text(uploadID)})
	})
	if err != nil {
		return nil, fmt.Errorf("list parts of upload %s: %w", uploadID, err)
	}
	return parts, nil
}

// SumParts implements [store.UploadParts].
func (db *DB) SumParts(ctx context.Context, uploadID string) (parts int, bytes int64, err error) {
	err = db.read(ctx, func(s *steps) {
		s.row(`SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM parts
			WHERE upload = @upload`, args{"upload": text(uploadID)}, &parts, &bytes)
	})
	if err != nil {
		return 0, 0, fmt.Errorf("sum parts of upload %s: %w", uploadID, err)
	}
	return parts, bytes, nil
}

// DropParts implements [store.UploadParts].
func (db *DB) DropParts(ctx context.Context, uploadID string) error {
	err := db.write(ctx, func(s *steps) {
		s.do("DELETE FROM parts WHERE upload = @upload", args{"upload": text(uploadID)})
	})
	if err != nil {
		return fmt.Errorf("drop parts of upload %s: %w", uploadID, err)
	}
	return nil
}
