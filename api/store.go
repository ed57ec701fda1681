package api

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Store is what a Server needs of a store: one field for each kind of state, so that each may be in
// a system of its own. All fields are required. Package store documents what the methods guarantee,
// in its interfaces of the same names.
type Store struct {
	Metadata Metadata
	Progress ProgressBoard
	Blobs    Blobs
	Journals Journals
	Ledger   Ledger
}

func (s Store) complete() bool {
	return s.Metadata != nil && s.Progress != nil && s.Blobs != nil && s.Journals != nil &&
		s.Ledger != nil
}

// Metadata holds the records of files, uploads, batches and chunks.
type Metadata interface {
	Files
	Uploads
	UploadParts
	Batches
	BatchLists
	Changes
	References
	Owners
	Claims
	Tallies
	Keys
	KeyUses
	Tenants
}

// Files holds the metadata of files.
type Files interface {
	CreateFile(ctx context.Context, f store.File) error
	File(ctx context.Context, tenant, id string) (store.File, error)
	ListFiles(ctx context.Context, tenant string, q store.FileQuery) (store.Page[store.File], error)
	DeleteFile(ctx context.Context, tenant, id string) (store.File, error)
	ExpiredFiles(ctx context.Context, limit int) ([]store.File, error)
	PurgeFile(ctx context.Context, id string) error
	UsedBytes(ctx context.Context, tenant string) (int64, error)
}

// Uploads holds uploads in parts.
type Uploads interface {
	CreateUpload(ctx context.Context, u store.Upload) error
	Upload(ctx context.Context, tenant, id string) (store.Upload, error)
	CountPending(ctx context.Context, tenant string) (int, error)
	CompleteUpload(ctx context.Context, tenant, id string, f store.File) (store.Upload, error)
	CancelUpload(ctx context.Context, tenant, id string) (store.Upload, error)
	StaleUploads(ctx context.Context, limit int) ([]store.Upload, error)
	PurgeUploads(ctx context.Context, expiredBefore time.Time, limit int) (int, error)
}

// UploadParts holds the parts of uploads.
type UploadParts interface {
	AddPart(ctx context.Context, p store.Part) error
	Parts(ctx context.Context, uploadID string) ([]store.Part, error)
	SumParts(ctx context.Context, uploadID string) (parts int, bytes int64, err error)
	DropParts(ctx context.Context, uploadID string) error
}

// Batches holds batches.
type Batches interface {
	CreateBatch(ctx context.Context, b store.Batch, files ...store.File) error
	Parameters(ctx context.Context, id string) (store.Parameters, error)
	Batch(ctx context.Context, tenant, id string) (store.Batch, error)
	UpdateBatch(ctx context.Context, b store.Batch) (store.Batch, error)
	DeleteBatch(ctx context.Context, tenant, id string) (store.Batch, error)
}

// BatchLists finds batches.
type BatchLists interface {
	ListBatchIDs(ctx context.Context, tenant string, q store.BatchQuery) (store.Page[string], error)
	SearchBatchIDs(ctx context.Context, q store.BatchSearch) (store.Page[string], error)
	StaleBatches(ctx context.Context, endedBefore time.Time, limit int) ([]store.Batch, error)
}

// Changes reports which batches have changed.
type Changes interface {
	ChangedBatches(ctx context.Context, after store.Cursor, limit int) (ids []string,
		next store.Cursor, err error)
}

// References records which blobs are in use.
type References interface {
	DropBlobs(ctx context.Context, expired string, keys ...string) (dropped []string, err error)
}

// Owners reports whose lease lasts.
type Owners interface {
	LiveOwners(ctx context.Context, owners []store.Owner) ([]store.Owner, error)
}

// Claims lists the chunks of batches, whose journals hold the results.
type Claims interface {
	Chunks(ctx context.Context, batch string) ([]store.Chunk, error)
}

// Tallies sums up done chunks.
type Tallies interface {
	SumDone(ctx context.Context, chunks map[string][]int) (map[string]store.DoneChunks, error)
}

// Keys remembers idempotency keys.
type Keys interface {
	Remember(ctx context.Context, tenant, key, value string, ttl time.Duration) (stored string,
		fresh bool, err error)
	Forget(ctx context.Context, tenant, key, value string) error
}

// ProgressBoard reads the progress of running batches.
type ProgressBoard interface {
	ProgressPosts(ctx context.Context, batches []string) (map[string][]store.ProgressPost, error)
}

// Blobs holds the bytes of files.
type Blobs interface {
	Create(ctx context.Context, key string) (store.BlobWriter, error)
	Open(ctx context.Context, key string) (store.Blob, error)
	Delete(ctx context.Context, key string) error
	DeletePrefix(ctx context.Context, prefix string) error
	List(ctx context.Context, prefix, after string, limit int) ([]store.BlobInfo, error)
}

// Journals reads results while a batch runs.
type Journals interface {
	Read(ctx context.Context, id store.ChunkID,
		each func(store.Record, store.Location) error) error
	Results(ctx context.Context, id store.ChunkID) (store.Results, error)
	Remove(ctx context.Context, batch string) error
}

// Ledger reads what was used.
type Ledger interface {
	Usage(ctx context.Context, q store.UsageQuery) ([]store.Used, error)
}
