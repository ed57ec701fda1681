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

// Page is one page of a listing.
type Page[T any] struct {
	Items []T
	More  bool
	Next  string // of files: where the next page begins
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

// UploadState is where an upload in parts stands.
type UploadState string

const (
	UploadPending   UploadState = "pending"
	UploadCompleted UploadState = "completed"
	UploadCancelled UploadState = "cancelled"
	UploadExpired   UploadState = "expired"
)

// Upload is a file that arrives in parts.
type Upload struct {
	ID        string
	Tenant    string
	State     UploadState
	Filename  string
	Purpose   string
	MIMEType  string
	Bytes     int64 // announced size of the whole
	CreatedAt time.Time
	ExpiresAt time.Time
	FileLife  time.Duration // life of the completed file; zero: the purpose's default
	FileID    string        // set when completed
}

// Part is one part of an upload; its bytes stand in [Blobs] under BlobKey.
type Part struct {
	ID        string
	UploadID  string
	Bytes     int64
	CreatedAt time.Time
	BlobKey   string
}

// Uploads keeps uploads in parts. A pending upload whose time is over reads as UploadExpired.
type Uploads interface {
	CreateUpload(ctx context.Context, u Upload) error
	// Upload reads one. An empty tenant reads across tenants; so does the sweeper.
	Upload(ctx context.Context, tenant, id string) (Upload, error)
	// CountPending counts the tenant's pending uploads.
	CountPending(ctx context.Context, tenant string) (int, error)
	// CompleteUpload creates the file of a pending upload and completes the upload, in one step;
	// ErrConflict when it isn't pending any more.
	CompleteUpload(ctx context.Context, tenant, id string, f File) (Upload, error)
	// CancelUpload ends a pending upload without a file; ErrConflict when it isn't pending any
	// more.
	CancelUpload(ctx context.Context, tenant, id string) (Upload, error)
	// AddPart is refused with ErrConflict when the upload isn't pending.
	AddPart(ctx context.Context, p Part) error
	// Parts lists the parts of an upload in order of their arrival.
	Parts(ctx context.Context, uploadID string) ([]Part, error)
	// SumParts returns how many parts an upload has, and how many bytes they have together.
	SumParts(ctx context.Context, uploadID string) (parts int, bytes int64, err error)
	// StaleUploads returns up to limit uploads that are over (expired while pending, completed,
	// cancelled) and still have parts, for the sweeper to drop their bytes and then call DropParts.
	StaleUploads(ctx context.Context, limit int) ([]Upload, error)
	DropParts(ctx context.Context, uploadID string) error
	// PurgeUploads removes up to limit uploads of any tenant whose ExpiresAt lies before the given
	// time, in whatever way they ended, and returns how many. Those that still have parts stay.
	PurgeUploads(ctx context.Context, expiredBefore time.Time, limit int) (int, error)
}
