package postgres

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// oldDropsPerCall is the maximum number of expired rows of dropped_blobs that one call of DropBlobs
// deletes. It is above one, so that rows are deleted faster than they are added.
const oldDropsPerCall = 8

// notDropped is the condition that none of the blobs @blobs is dropped. The transaction shares
// their locks, so that it stays so until its end.
const notDropped = "NOT EXISTS (SELECT 1 FROM dropped_blobs WHERE blob = ANY (@blobs::text[]))"

// DropBlobs implements [store.References].
func (db *DB) DropBlobs(
	ctx context.Context, expired string, keys ...string,
) (dropped []string, err error) {
	var blobs []string
	for _, key := range keys {
		if key != "" {
			blobs = append(blobs, text(key))
		}
	}
	if len(blobs) == 0 {
		return nil, nil
	}
	now := db.clock()
	err = db.write(ctx, func(s *steps) {
		dropped = nil
		s.lock(lockBlob, blobs...)
		s.rows(`WITH unused AS (SELECT DISTINCT blob FROM unnest(@blobs::text[]) AS blob
				WHERE NOT EXISTS (SELECT 1 FROM file_blobs AS r
					WHERE r.blob = blob.blob AND r.file <> @expired)
				AND NOT EXISTS (SELECT 1 FROM batch_blobs AS r WHERE r.blob = blob.blob)),
			dropped AS (INSERT INTO dropped_blobs (blob, dropped)
				SELECT blob, `+serverNow+` FROM unused ON CONFLICT (blob) DO NOTHING)
			SELECT blob FROM unused`,
			args{"blobs": blobs, "expired": text(expired), "now": now},
			tables.Collect(&dropped, tables.ScanScalar[string]))
		s.do(`DELETE FROM dropped_blobs WHERE blob IN (SELECT blob FROM dropped_blobs
			WHERE dropped <= `+serverNow+` - @kept::bigint ORDER BY dropped LIMIT @limit::bigint
			FOR UPDATE SKIP LOCKED)`, args{"now": now, "limit": int64(oldDropsPerCall),
			"kept": store.DroppedRetention.Microseconds()})
	})
	if err != nil {
		return nil, fmt.Errorf("drop blobs: %w", err)
	}
	return dropped, nil
}

// addInputReferences records that the batch refers to the blobs of its inputs. The transaction ends
// with ErrNotFound if an input file does not exist, is expired, or has a dropped blob.
func (s *steps) addInputReferences(b store.Batch, expiry int64) {
	var files, first []string
	for _, in := range b.Inputs {
		files, first = append(files, text(in.FileID)), append(first, text(in.BlobKey))
	}
	if len(files) == 0 {
		return
	}
	blobs := texts(tables.InputBlobs(b))
	s.share(lockBlob, blobs...)
	const gone = "an input file does not exist"
	s.require(refusedNotFound, gone, notDropped, args{"blobs": blobs})
	s.require(refusedNotFound, gone, `NOT EXISTS (
		SELECT 1 FROM unnest(@files::text[], @first::text[]) AS i (file, blob)
		WHERE NOT EXISTS (SELECT 1 FROM files AS f JOIN file_blobs AS r ON r.file = f.id
			WHERE f.id = i.file AND f.tenant = @tenant AND f.expires > @expiry
			AND r.blob = i.blob))`,
		args{"files": files, "first": first, "tenant": text(b.Tenant), "expiry": expiry})
	// A batch may list a file more than once.
	s.do(`INSERT INTO batch_blobs (blob, batch) SELECT DISTINCT blob, @batch::text
		FROM unnest(@blobs::text[]) AS blob`, args{"blobs": blobs, "batch": text(b.ID)})
}
