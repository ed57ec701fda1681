package store

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// File is what the Files API knows of one file. Its bytes stand in [Blobs] under BlobKey.
type File struct {
	ID        string
	Tenant    string
	Purpose   string
	Filename  string
	Bytes     int64
	CreatedAt time.Time
	ExpiresAt time.Time // zero: until deleted
	BlobKey   string
	IndexKey  string // line index of a batch input; empty: none
	// what the upload's validation found; nil unless a batch input, and in listings
	Summary *batchfile.Summary
}

// FileQuery selects a page of a tenant's files by CreatedAt; ties in order of CreateFile, or its
// reverse.
type FileQuery struct {
	Purpose string // empty: any
	After   string // id of the last file of the page before; empty: from the start
	// in place of After: Next of the page before, which holds even if its last file is gone by now
	Next      string
	Limit     int // 0: all
	Ascending bool
}

// Files keeps file metadata. A file that has expired is gone for every method but ExpiredFiles.
type Files interface {
	// CreateFile stores f. ErrExists when the id is taken, ErrConflict when its bytes have been
	// dropped.
	CreateFile(ctx context.Context, f File) error
	// File reads one. An empty tenant reads across tenants; so does the sweeper.
	File(ctx context.Context, tenant, id string) (File, error)
	// ListFiles leaves out summaries, which hold up to a thousand faults each.
	ListFiles(ctx context.Context, tenant string, q FileQuery) (Page[File], error)
	// DeleteFile removes the row and returns it, so that the caller can remove the bytes by
	// RemoveBlobs. ErrNotFound the second time.
	DeleteFile(ctx context.Context, tenant, id string) (File, error)
	// ExpiredFiles returns up to limit files of any tenant whose life is over, without summaries,
	// for the sweeper to remove the bytes and then to call PurgeFile.
	ExpiredFiles(ctx context.Context, limit int) ([]File, error)
	PurgeFile(ctx context.Context, id string) error
	// UsedBytes sums the tenant's files, those that have expired but aren't purged too, and the
	// parts of its uploads.
	UsedBytes(ctx context.Context, tenant string) (int64, error)
}
