package store

import (
	"context"
	"io"
	"time"
)

// Blobs holds the bytes of files. Keys are slash-separated paths of letters, digits, '-', '_' and
// '.'. No key starts with another key and "/".
type Blobs interface {
	// Create starts a blob. It is visible from Commit on, and nothing is left of it after Abort or
	// a crash. The context must last until Commit or Abort: a Write may wait for the medium, and
	// may fail once the context has ended.
	Create(ctx context.Context, key string) (BlobWriter, error)
	// Open opens a committed blob. The context must last until Close: a ReadAt may wait for the
	// medium, and may fail once the context has ended. ErrNotFound: there is no such blob.
	Open(ctx context.Context, key string) (Blob, error)
	// Delete removes a blob, if there is one. Readers that have opened it can go on, or get
	// ErrNotFound where the medium can't keep it for them.
	Delete(ctx context.Context, key string) error
	// DeletePrefix removes all blobs whose key starts with prefix + "/".
	DeletePrefix(ctx context.Context, prefix string) error
	// List returns up to limit (0: all) committed blobs whose key starts with prefix + "/" and
	// sorts after the given one, in the byte order of their keys. An empty after lists from the
	// start. A blob that is committed or deleted meanwhile may be listed or not.
	List(ctx context.Context, prefix, after string, limit int) ([]BlobInfo, error)
}

// BlobInfo is an entry of a listing.
type BlobInfo struct {
	Key   string
	Bytes int64
	// CommittedAt is by the clock of the process that committed it, or of the medium. It may be
	// rounded down to a second.
	CommittedAt time.Time
}

// BlobWriter writes one blob. Write fails with ErrNoSpace on a full medium, and then only Abort may
// follow.
type BlobWriter interface {
	io.Writer
	// Commit makes the bytes durable and the blob visible. It replaces an earlier blob of the key
	// in one step. Readers of that one are served as after its Delete: they never get bytes of the
	// new one.
	Commit(ctx context.Context) error
	// Abort drops the bytes. It does not wait: a backend on a network removes them in the
	// background. After Commit it does nothing, so it can be deferred.
	Abort() error
}

// Blob is an open blob. ReadAt may be called concurrently.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Spool makes temporary files for data that is too large for memory.
type Spool interface {
	// Temporary makes an empty file on a local medium. It is deleted when it is closed or when the
	// process ends.
	Temporary(ctx context.Context) (Temporary, error)
	// TemporarySpace returns the number of bytes that temporary files can have together, with those
	// that they have now; math.MaxInt64 if the system does not report free space.
	TemporarySpace() (int64, error)
}

// Temporary is a file of a Spool. Writes append, and fail with ErrNoSpace on a full medium.
type Temporary interface {
	io.Writer
	io.ReaderAt
	io.Closer
}
