package store

import (
	"context"
	"io"
	"time"
)

// Blobs keeps the bytes of files. Keys are slash-separated paths of letters, digits, '-', '_' and
// '.'; a key and "/" don't start another key.
type Blobs interface {
	// Create starts a blob. Nobody sees it before Commit, and nothing is left of it after Abort or
	// a crash. The context must last until Commit or Abort: a Write may wait for the medium, and
	// fails once the context has ended.
	Create(ctx context.Context, key string) (BlobWriter, error)
	// Open returns the committed blob; ErrNotFound if there is none. The context must last until
	// Close: a ReadAt may wait for the medium, and fails once the context has ended.
	Open(ctx context.Context, key string) (Blob, error)
	// Delete removes a blob; no error when there is none. Those who have it open can go on reading.
	Delete(ctx context.Context, key string) error
	// DeletePrefix removes all blobs whose key starts with prefix + "/".
	DeletePrefix(ctx context.Context, prefix string) error
	// List returns up to limit (0: all) committed blobs whose key starts with prefix + "/" and
	// sorts after the given key, in order of their keys, byte by byte. An empty after lists from
	// the start. A blob that comes or goes meanwhile is listed or not.
	List(ctx context.Context, prefix, after string, limit int) ([]BlobInfo, error)
}

// BlobInfo is what a listing tells of a blob.
type BlobInfo struct {
	Key         string
	Bytes       int64
	CommittedAt time.Time // by the clock of the process that committed it
}

// BlobWriter writes one blob. Write fails with ErrNoSpace on a full medium; the writer is then good
// for Abort only.
type BlobWriter interface {
	io.Writer
	// Commit makes the bytes durable and the blob visible, replacing an earlier one of the key in
	// one step.
	Commit(ctx context.Context) error
	// Abort drops what was written. It does not wait: a backend on a network removes the rest in
	// the background. After Commit it does nothing, so it can be deferred.
	Abort() error
}

// Blob is a committed blob; ReadAt may be called concurrently.
type Blob interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Spool keeps what is too large for memory and not wanted for long.
type Spool interface {
	// Temporary makes an empty file on a local medium. It is gone when it is closed, or when the
	// process ends.
	Temporary(ctx context.Context) (Temporary, error)
}

// Temporary is a file of a Spool. Writes append, and fail with ErrNoSpace on a full medium.
type Temporary interface {
	io.Writer
	io.ReaderAt
	io.Closer
}
