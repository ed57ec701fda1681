package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DroppedRetention is the time for which a backend remembers a dropped blob. A process that is
// suspended for longer could create a row that refers to missing bytes.
const DroppedRetention = 7 * 24 * time.Hour

// References records which files and batches refer to which blobs. A file refers to its BlobKey and
// IndexKey from CreateFile or FinishBatch until its row is deleted. A batch refers to those of its
// inputs from CreateBatch until it is terminal.
type References interface {
	// DropBlobs marks as dropped, in one step, those of the blobs that nothing refers to, and
	// returns them together with those that were dropped before. The references of the file named
	// by expired are ignored, since its row is about to be purged; empty: no file. From then on
	// CreateFile, CreateBatch and FinishBatch refuse references to a dropped blob, so its bytes can
	// be removed at any time, even by a process that was suspended meanwhile.
	DropBlobs(ctx context.Context, expired string, keys ...string) (dropped []string, err error)
}

// RemoveBlobs removes the bytes of those of the blobs that nothing refers to. The bytes of files
// are removed in no other way. Empty keys are ignored; expired is as in DropBlobs.
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
