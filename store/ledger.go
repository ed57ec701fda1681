package store

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// BatchClass is the class of the lines of batches in the ledger. Interactive requests have that of
// their use case.
const BatchClass = "batch"

// Used is what requests of a tenant, a model and a class have used, that were answered in one hour.
type Used struct {
	Tenant, Model, Class string
	Hour                 time.Time // its beginning, UTC
	Requests             int64     // that were answered, or failed for good
	Failed               int64     // part of them
	Tokens               batchfile.Usage
}

// UsageRetention is the time for which the ledger is kept.
const UsageRetention = 400 * 24 * time.Hour

// UsageQuery asks the ledger for sums.
type UsageQuery struct {
	// Tenants and Models select requests. Empty: all.
	Tenants, Models []string
	// From and Until select hours by their beginning: those from From on, before Until.
	From, Until time.Time
	// Width is that of a bucket of the sums, a multiple of an hour. Buckets begin at multiples of
	// it since 1970.
	Width time.Duration
	// ByTenant, ByModel and ByClass have those summed up one by one. Otherwise they are empty in
	// the answer.
	ByTenant, ByModel, ByClass bool
}

// Ledger is the account of what was used, by tenant, model, class and hour. FinishChunks adds the
// tallies of chunks to it, in the same step, and ReopenChunk takes them back. What is in it does
// not go with its batch.
type Ledger interface {
	// AddUsage adds what interactive requests have used, in one step, and removes the hours that
	// began before a time. Each call of an owner has a higher number than those before. One with a
	// number that was stored adds nothing again, so a call whose end is unknown can be repeated.
	// ErrFenced: o is superseded, or its lease has ended; nothing is stored.
	AddUsage(ctx context.Context, o Owner, number int64, used []Used, before time.Time) error
	// Usage returns the sums of all buckets and groups that have any, ordered by hour, tenant,
	// model and class. Hour is the beginning of the bucket.
	Usage(ctx context.Context, q UsageQuery) ([]Used, error)
}
