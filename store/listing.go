package store

import (
	"context"
	"time"
)

// BatchOrder is the key that a listing is sorted by.
type BatchOrder string

const (
	// Batches of the same time are in the order of CreateBatch, or its reverse.
	ByCreation BatchOrder = "created_at"
	ByDeadline BatchOrder = "deadline" // batches without a deadline are last in either direction
)

// BatchQuery selects a page of a tenant's batches. Zero fields don't filter, no Limit means all.
// Bounds of times are excluded; a batch without a deadline lies within no bounds of it.
type BatchQuery struct {
	After     string
	Limit     int
	Order     BatchOrder // empty: ByCreation
	Ascending bool

	States                        []State
	Model                         string
	MetadataKey, MetadataValue    string // the key alone, or key and value
	CreatedAfter, CreatedBefore   time.Time
	DeadlineAfter, DeadlineBefore time.Time
}

// BatchSearch selects batches across tenants, for an operator. The newest one comes first.
type BatchSearch struct {
	Before string // an id: those that were created before it; empty: all
	Limit  int

	Tenant string  // empty: all
	Prefix string  // of the id
	States []State // empty: all
}

// Page is one page of a listing.
type Page[T any] struct {
	Items []T
	More  bool
	Next  string // of files: the start of the next page
}

// Within cuts a page that may have more than limit items.
func (p Page[T]) Within(limit int) Page[T] {
	if p.More = limit > 0 && len(p.Items) > limit; p.More {
		p.Items = p.Items[:limit]
	}
	return p
}

// BatchLists finds batches.
type BatchLists interface {
	// ListBatchIDs returns the ids of a page of a tenant's batches. Callers read the batches one by
	// one, since a batch may be large. ErrBadCursor: q.After is unknown.
	ListBatchIDs(ctx context.Context, tenant string, q BatchQuery) (Page[string], error)
	// SearchBatchIDs returns the ids of a page of batches. ErrBadCursor: q.Before is unknown.
	SearchBatchIDs(ctx context.Context, q BatchSearch) (Page[string], error)
	// StaleBatches returns the ID and Tenant of up to limit terminal batches that ended before the
	// given time, for retention.
	StaleBatches(ctx context.Context, endedBefore time.Time, limit int) ([]Batch, error)
}
