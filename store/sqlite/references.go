package sqlite

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// sweptDrops is the number of old drops that a new one removes. It is above one, so that their
// number falls.
const sweptDrops = 8

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
			drop, err := s.drop(ctx, expired, key, micros(now))
			if err != nil {
				return err
			}
			if drop {
				dropped = append(dropped, key)
			}
		}
		return s.exec(ctx, `DELETE FROM dropped_blobs WHERE blob IN
			(SELECT blob FROM dropped_blobs WHERE dropped <= ? ORDER BY dropped LIMIT ?)`,
			micros(now.Add(-store.DroppedRetention)), sweptDrops)
	})
	if err != nil {
		return nil, fmt.Errorf("drop blobs: %w", err)
	}
	return dropped, nil
}

// drop marks a blob as dropped if nothing refers to it, and reports whether it did.
func (s *session) drop(ctx context.Context, expired, key string, now int64) (bool, error) {
	var referred bool
	err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM file_blobs WHERE blob = ? AND file <> ?)
		OR EXISTS (SELECT 1 FROM batch_blobs WHERE blob = ?)`, []any{key, expired, key}, &referred)
	if err != nil || referred {
		return false, err
	}
	return true, s.exec(ctx, `INSERT INTO dropped_blobs (blob, dropped) VALUES (?, ?)
		ON CONFLICT (blob) DO NOTHING`, key, now)
}

// refer records with an insert of (blob, holder) that the holder refers to the blobs. ErrConflict:
// one of them was dropped.
func (s *session) refer(ctx context.Context, insert, holder string, keys ...string) error {
	for _, key := range keys {
		if key == "" {
			continue
		}
		dropped, err := s.dropped(ctx, key)
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

func (s *session) dropped(ctx context.Context, key string) (dropped bool, err error) {
	err = s.row(ctx, "SELECT EXISTS (SELECT 1 FROM dropped_blobs WHERE blob = ?)", []any{key},
		&dropped)
	return dropped, err
}

// referToInputs records that the batch refers to its inputs. ErrNotFound: the file of one, or its
// bytes, are missing.
func (s *session) referToInputs(ctx context.Context, b store.Batch, now int64) error {
	for _, in := range b.Inputs {
		var found bool
		err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM files AS f JOIN file_blobs AS r ON r.file = f.id
			WHERE f.id = ? AND f.tenant = ? AND f.expires > ? AND r.blob = ?)`,
			[]any{in.FileID, b.Tenant, now, in.BlobKey}, &found)
		if err != nil {
			return err
		}
		for _, key := range []string{in.BlobKey, in.IndexKey} {
			dropped, err := s.dropped(ctx, key)
			if err != nil {
				return err
			}
			if !found || dropped {
				return fmt.Errorf("input file %s: %w", in.FileID, store.ErrNotFound)
			}
			if key == "" {
				continue
			}
			// A batch may read a file more than once.
			err = s.exec(ctx, `INSERT INTO batch_blobs (blob, batch) VALUES (?, ?)
				ON CONFLICT (blob, batch) DO NOTHING`, key, b.ID)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
