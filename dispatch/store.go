package dispatch

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/dispatch/claim"
	"github.com/tidefill/tidefill/dispatch/finish"
	"github.com/tidefill/tidefill/dispatch/lead"
	"github.com/tidefill/tidefill/dispatch/send"
	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// Store is what a Dispatcher needs of a store: one field for each kind of state, so that each may
// be in a system of its own. All fields are required. Package store documents what the methods
// guarantee.
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

// Metadata holds batches, and who works on what: what each part needs of it, and what this package
// needs.
type Metadata interface {
	lead.Owners
	lead.Leads
	lead.Done
	claim.Store
	claim.AdmitStore
	finish.FinisherStore
	finish.FinalizerStore
	work.LinesCounter
	LearnedStates
	PoolHistory
	ChangedBatches(ctx context.Context, after store.Cursor, limit int) (ids []string,
		next store.Cursor, err error)
	CountChunks(ctx context.Context, o store.Owner, batch string,
		held []int) (store.ChunkCounts, error)
}

// LearnedStates keeps what was learned of pools.
type LearnedStates interface {
	SaveLearned(ctx context.Context, o store.Owner, states []store.LearnedState) error
	Learned(ctx context.Context) ([]store.LearnedState, error)
	ForgetLearned(ctx context.Context, pool string) (int, error)
}

// PoolHistory keeps what users of pools felt, and what interactive requests have used, by hour.
type PoolHistory interface {
	AddPoolHours(ctx context.Context, o store.Owner, number int64, hours []store.PoolHour,
		before time.Time) error
	AddUsage(ctx context.Context, o store.Owner, number int64, used []store.Used,
		before time.Time) error
}

// ProgressBoard holds the progress of running batches.
type ProgressBoard interface {
	lead.Posts
	PostProgress(ctx context.Context, o store.Owner, posts map[string]store.ProgressPost) error
}

// Blobs holds the bytes of files.
type Blobs interface{ finish.Blobs }

// Journals holds the results of chunks.
type Journals interface {
	finish.Journals
	finish.OldJournals
	Durability() store.Durability
}

// Spool holds temporary files.
type Spool interface{ send.TempFiles }
