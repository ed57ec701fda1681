package store

import (
	"context"
	"time"
)

// UploadState is the status of an upload in parts.
type UploadState string

const (
	UploadPending   UploadState = "pending"
	UploadCompleted UploadState = "completed"
	UploadCancelled UploadState = "cancelled"
	UploadExpired   UploadState = "expired"
)

// Upload is a file that is uploaded in parts.
type Upload struct {
	ID        string
	Tenant    string
	State     UploadState
	Filename  string
	Purpose   string
	MIMEType  string
	Bytes     int64 // announced size of the complete file
	CreatedAt time.Time
	ExpiresAt time.Time
	FileLife  time.Duration // time until the completed file expires; 0: the purpose's default
	FileID    string        // set when completed
}

// Part is one part of an upload; its bytes are in [Blobs] under BlobKey.
type Part struct {
	ID        string
	UploadID  string
	Bytes     int64
	CreatedAt time.Time
	BlobKey   string
}

// Uploads holds uploads in parts. A pending upload whose ExpiresAt has passed reads as
// UploadExpired.
type Uploads interface {
	// CreateUpload stores u. ErrExists: the id is taken.
	CreateUpload(ctx context.Context, u Upload) error
	// Upload reads one upload. An empty tenant reads across tenants.
	Upload(ctx context.Context, tenant, id string) (Upload, error)
	// CountPending counts the tenant's pending uploads.
	CountPending(ctx context.Context, tenant string) (int, error)
	// CompleteUpload creates the file of a pending upload and completes the upload, in one step.
	// ErrConflict: it is not pending any more.
	CompleteUpload(ctx context.Context, tenant, id string, f File) (Upload, error)
	// CancelUpload ends a pending upload without a file. ErrConflict: it is not pending any more.
	CancelUpload(ctx context.Context, tenant, id string) (Upload, error)
	// StaleUploads returns up to limit uploads that are over (expired while pending, completed,
	// cancelled) and still have parts. The sweeper removes the bytes of the parts and then calls
	// DropParts.
	StaleUploads(ctx context.Context, limit int) ([]Upload, error)
	// PurgeUploads removes up to limit uploads of any tenant whose ExpiresAt is before the given
	// time, in whatever way they ended, and returns their number. Uploads that still have parts
	// stay.
	PurgeUploads(ctx context.Context, expiredBefore time.Time, limit int) (int, error)
}

// UploadParts holds the parts of uploads.
type UploadParts interface {
	// AddPart adds a part. ErrConflict: the upload is not pending.
	AddPart(ctx context.Context, p Part) error
	// Parts lists the parts of an upload in order of their arrival.
	Parts(ctx context.Context, uploadID string) ([]Part, error)
	// SumParts returns the number of parts of an upload, and their total size.
	SumParts(ctx context.Context, uploadID string) (parts int, bytes int64, err error)
	// DropParts removes the rows of all parts of an upload.
	DropParts(ctx context.Context, uploadID string) error
}
