package store

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// File describes one file. Its bytes are in [Blobs] under BlobKey.
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
	// Storage is where the bytes are; nil: in the Blobs of the backend.
	Storage *Storage `json:",omitempty"`
	// Summary is the result of the upload's validation; nil in listings, and if the file is no
	// batch input.
	Summary *batchfile.Summary
}

// FileQuery selects a page of a tenant's files by CreatedAt; ties in order of CreateFile, or its
// reverse.
type FileQuery struct {
	Purpose string // empty: any
	After   string // id of the last file of the previous page; empty: from the start
	// Next is that of the previous page. It replaces After, and is valid even if the last file of
	// that page has been deleted.
	Next      string
	Limit     int // 0: all
	Ascending bool
}

// Files holds the metadata of files. Only ExpiredFiles and PurgeFile see a file that has expired.
type Files interface {
	// CreateFile stores f. ErrExists: the id is taken. ErrConflict: its bytes have been dropped.
	CreateFile(ctx context.Context, f File) error
	// File reads one file. An empty tenant reads across tenants.
	File(ctx context.Context, tenant, id string) (File, error)
	// ListFiles returns a page of a tenant's files, without summaries, which hold up to a thousand
	// faults each.
	ListFiles(ctx context.Context, tenant string, q FileQuery) (Page[File], error)
	// DeleteFile removes the row and returns it. The caller removes the bytes by RemoveBlobs.
	DeleteFile(ctx context.Context, tenant, id string) (File, error)
	// ExpiredFiles returns up to limit expired files of any tenant, without summaries. The sweeper
	// removes the bytes and then calls PurgeFile.
	ExpiredFiles(ctx context.Context, limit int) ([]File, error)
	// PurgeFile removes the row of an expired file.
	PurgeFile(ctx context.Context, id string) error
	// UsedBytes returns the total size of the tenant's files, those that have expired and are not
	// purged included, and of the parts of its uploads.
	UsedBytes(ctx context.Context, tenant string) (int64, error)
}
