package store

import (
	"context"
	"time"
)

// TenantTotals is what a tenant has stored.
type TenantTotals struct {
	Tenant  string
	Batches int // ended ones included
	Active  int // those that have not ended
	Files   int
	// Bytes is as [Files.UsedBytes] returns it.
	Bytes int64
}

// Status reports on a backend.
type Status interface {
	// Newest returns the newest time that the backend has stored: the creation of a file or batch,
	// the end of a batch, or the lease of an owner, which lies a little ahead of the clock. Zero:
	// nothing is stored.
	Newest(ctx context.Context) (time.Time, error)
	// Tenants returns the tenants that have anything, in any order.
	Tenants(ctx context.Context) ([]TenantTotals, error)
	// Ping reports whether the backend answers.
	Ping(ctx context.Context) error
}
