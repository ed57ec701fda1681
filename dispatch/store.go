package dispatch

import (
	"context"

	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/store"
)

// Store is what a Dispatcher needs of a store: one field for each kind of state, so that each may
// be in a system of its own. All fields are required. Package store documents what the methods
// guarantee, in its interfaces of the same names.
type Store struct {
	Metadata Metadata
	Progress ProgressBoard
	Blobs    Blobs
	Journals Journals
	Spool    Spool // for answers that do not fit in memory
}

func (s Store) complete() bool {
	return s.Metadata != nil && s.Progress != nil && s.Blobs != nil && s.Journals != nil &&
		s.Spool != nil
}

// Metadata holds batches, and who works on what.
type Metadata interface {
	Batches
	Changes
	References
	lead.Owners
	Claims
	Tallies
	Locks
	lead.Leads
	LearnedStates
}

// Batches holds batches.
type Batches interface {
	Batch(ctx context.Context, tenant, id string) (store.Batch, error)
	Parameters(ctx context.Context, id string) (store.Parameters, error)
	UpdateBatch(ctx context.Context, b store.Batch) (store.Batch, error)
	FinishBatch(ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch,
		files []store.File) (store.Batch, error)
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

// Tallies sums up what is done.
type Tallies interface {
	SumDone(ctx context.Context, chunks map[string][]int) (map[string]store.DoneChunks, error)
}

// Claims hands out chunks.
type Claims interface {
	AddChunks(ctx context.Context, batch string, chunks []store.Chunk) error
	ClaimChunks(ctx context.Context, o store.Owner, batch, model string, n int,
		held []int) ([]store.Chunk, error)
	FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error
	ReleaseChunk(ctx context.Context, o store.Owner, c store.Chunk) error
	ReopenChunk(ctx context.Context, c store.Chunk) error
	Chunks(ctx context.Context, batch string) ([]store.Chunk, error)
	LinesLeft(ctx context.Context) (map[string]map[string]int, error)
	CountChunks(ctx context.Context, o store.Owner, batch string,
		held []int) (store.ChunkCounts, error)
}

// Locks gives each name to one owner at a time.
type Locks interface {
	Lock(ctx context.Context, o store.Owner, name string) (epoch int64, ok bool, err error)
	Unlock(ctx context.Context, o store.Owner, name string) error
}

// LearnedStates keeps what was learned of pools.
type LearnedStates interface {
	SaveLearned(ctx context.Context, o store.Owner, states []store.LearnedState) error
	Learned(ctx context.Context) ([]store.LearnedState, error)
	ForgetLearned(ctx context.Context, pool string) (int, error)
}

// ProgressBoard holds the progress of running batches.
type ProgressBoard interface {
	PostProgress(ctx context.Context, o store.Owner, posts map[string]store.ProgressPost) error
	ProgressPosts(ctx context.Context, batches []string) (map[string][]store.ProgressPost, error)
}

// Blobs holds the bytes of files.
type Blobs interface {
	Create(ctx context.Context, key string) (store.BlobWriter, error)
	Open(ctx context.Context, key string) (store.Blob, error)
	Delete(ctx context.Context, key string) error
}

// Journals holds the results of chunks.
type Journals interface {
	Durability() store.Durability
	Open(ctx context.Context, id store.ChunkID, epoch int64, replay func(store.Record),
		committed func(store.Commit)) (store.Journal, error)
	store.JournalReader
	Batches(ctx context.Context) ([]string, error)
	Remove(ctx context.Context, batch string) error
}

// Spool holds temporary files.
type Spool interface {
	Temporary(ctx context.Context) (store.Temporary, error)
	TemporarySpace() (int64, error)
}
