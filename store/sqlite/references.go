package sqlite

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// oldDropsPerCall is the maximum number of expired rows of dropped_blobs that one call of DropBlobs
// deletes. It is above one, so that rows are deleted faster than they are added.
const oldDropsPerCall = 8

// DropBlobs implements [store.References].
func (db *DB) DropBlobs(
	ctx context.Context, expired string, keys ...string,
) (dropped []string, err error) {
	now := db.now()
	err = db.write(ctx, func(s *session) error {
		dropped = nil
		for _, key := range keys {
			if key == "" {
				continue
			}
			ok, err := s.dropBlob(ctx, expired, key, tables.Micros(now))
			if err != nil {
				return err
			}
			if ok {
				dropped = append(dropped, key)
			}
		}
		return s.exec(ctx, `DELETE FROM dropped_blobs WHERE blob IN
			(SELECT blob FROM dropped_blobs WHERE dropped <= ? ORDER BY dropped LIMIT ?)`,
			tables.Micros(now.Add(-store.DroppedRetention)), oldDropsPerCall)
	})
	if err != nil {
		return nil, fmt.Errorf("drop blobs: %w", err)
	}
	return dropped, nil
}

// dropBlob marks a blob as dropped unless a batch or a file other than expired refers to it, and
// reports whether the blob is dropped now.
func (s *session) dropBlob(ctx context.Context, expired, key string, now int64) (bool, error) {
	var inUse bool
	err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM file_blobs WHERE blob = ? AND file <> ?)
		OR EXISTS (SELECT 1 FROM batch_blobs WHERE blob = ?)`, []any{key, expired, key}, &inUse)
	if err != nil || inUse {
		return false, err
	}
	return true, s.exec(ctx, `INSERT INTO dropped_blobs (blob, dropped) VALUES (?, ?)
		ON CONFLICT (blob) DO NOTHING`, key, now)
}

// addReferences records that a file or a batch, the holder, refers to the blobs. insert is the
// statement that adds a row of (blob, holder). It returns ErrConflict if one of the blobs is
// dropped.
func (s *session) addReferences(ctx context.Context, insert, holder string, keys ...string) error {
	for _, key := range keys {
		dropped, err := s.isDropped(ctx, key)
		if err == nil && dropped {
			err = fmt.Errorf("blob %s was dropped: %w", key, store.ErrConflict)
		}
		if err == nil {
			err = s.exec(ctx, insert, key, holder)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) isDropped(ctx context.Context, key string) (dropped bool, err error) {
	err = s.row(ctx, "SELECT EXISTS (SELECT 1 FROM dropped_blobs WHERE blob = ?)", []any{key},
		&dropped)
	return dropped, err
}

// addInputReferences records that the batch refers to the blobs of its inputs. It returns
// ErrNotFound if an input file does not exist, is expired, or has a dropped blob.
func (s *session) addInputReferences(ctx context.Context, b store.Batch, now int64) error {
	for _, in := range b.Inputs {
		var found bool
		err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM files AS f JOIN file_blobs AS r ON r.file = f.id
			WHERE f.id = ? AND f.tenant = ? AND f.expires > ? AND r.blob = ?)`,
			[]any{in.FileID, b.Tenant, now, in.BlobKey}, &found)
		if err != nil {
			return err
		}
		for _, key := range []string{in.BlobKey, in.IndexKey} {
			dropped, err := s.isDropped(ctx, key)
			if err != nil {
				return err
			}
			if !found || dropped {
				return fmt.Errorf("input file %s: %w", in.FileID, store.ErrNotFound)
			}
			if key == "" {
				continue
			}
			// A batch may list a file more than once.
			err = s.exec(ctx, `INSERT INTO batch_blobs (blob, batch) VALUES (?, ?)
				ON CONFLICT (blob, batch) DO NOTHING`, key, b.ID)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
