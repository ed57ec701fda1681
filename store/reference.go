package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DroppedLife is how long a backend remembers a dropped blob. Afterwards a process that stood still
// for so long could make a row that refers to bytes which are gone.
const DroppedLife = 7 * 24 * time.Hour

// References records which files and living batches refer to which blobs. A file refers to its
// BlobKey and IndexKey from CreateFile or FinishBatch until its row is deleted; a batch refers to
// those of its inputs from CreateBatch until it is terminal.
type References interface {
	// DropBlobs marks as dropped, in one step, those of the blobs that nothing refers to, and
	// returns them; blobs that were dropped before are among them. The file named by expired, which
	// may be empty, doesn't count: its row is about to be purged. From then on CreateFile,
	// CreateBatch and FinishBatch refuse what would refer to a dropped blob, so its bytes can be
	// removed at any time, even by a process that stood still meanwhile.
	DropBlobs(ctx context.Context, expired string, keys ...string) (dropped []string, err error)
}

// RemoveBlobs removes the bytes of those of the blobs that nothing refers to. No other way leads to
// the removal of a file's bytes. Empty keys are ignored; expired is as in DropBlobs.
func RemoveBlobs(
	ctx context.Context, references References, blobs blobDeleter, expired string, keys ...string,
) error {
	dropped, err := references.DropBlobs(ctx, expired, keys...)
	if err != nil {
		return err
	}
	faults := make([]error, 0, len(dropped))
	for _, key := range dropped {
		if err := blobs.Delete(ctx, key); err != nil {
			faults = append(faults, fmt.Errorf("remove dropped blob: %w", err))
		}
	}
	return errors.Join(faults...)
}

// blobDeleter is the part of Blobs that RemoveBlobs needs.
type blobDeleter interface {
	Delete(ctx context.Context, key string) error
}
