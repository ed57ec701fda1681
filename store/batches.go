package store

import "context"

// Batches holds batches.
type Batches interface {
	// CreateBatch stores b with Version 1, its Parameters if it has any, and the files that were
	// made for it, all in one step. ErrExists: an id is taken. ErrNotFound: b is not terminal, and
	// the file of one of its inputs is gone or its bytes are being removed.
	CreateBatch(ctx context.Context, b Batch, files ...File) error
	// Parameters reads the Parameters that CreateBatch stored; zero if there were none.
	// ErrNotFound: there is no such batch.
	Parameters(ctx context.Context, id string) (Parameters, error)
	// Batch reads one batch. An empty tenant reads across tenants.
	Batch(ctx context.Context, tenant, id string) (Batch, error)
	// UpdateBatch writes b if the stored version is still b.Version, and returns it with the next
	// version. ErrConflict: the version differs, or the stored batch is terminal, which never
	// changes again. ErrNotFound: b.Tenant has no such batch.
	UpdateBatch(ctx context.Context, b Batch) (Batch, error)
	// FinishBatch writes the terminal batch b and creates the files, in one step. It is UpdateBatch
	// for the owner that holds the named lock at the epoch. ErrFenced: another owner has got the
	// lock since. ErrConflict: as for UpdateBatch, or the bytes of a file have been dropped.
	FinishBatch(ctx context.Context, o Owner, lock string, epoch int64, b Batch,
		files []File) (Batch, error)
	// DeleteBatch removes a terminal batch with its chunks and returns it. ErrConflict: it is not
	// terminal.
	DeleteBatch(ctx context.Context, tenant, id string) (Batch, error)
}
