package webhook

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Store is what a Notifier needs of a store.
type Store interface {
	Batch(ctx context.Context, tenant, id string) (store.Batch, error)
	ChangedBatches(ctx context.Context, after store.Cursor, limit int) (ids []string,
		next store.Cursor, err error)
	Owners
	store.Notices
}

// Owners decides which process leads an endpoint.
type Owners interface {
	Register(ctx context.Context, node string, ttl time.Duration) (store.Owner, error)
	Renew(ctx context.Context, o store.Owner, ttl time.Duration) error
	Unregister(ctx context.Context, o store.Owner) error
	LiveOwners(ctx context.Context, owners []store.Owner) ([]store.Owner, error)
	Lead(ctx context.Context, o store.Owner, names []string) (epoch int64,
		others map[string]string, err error)
}

// ProgressBoard has the forecasts of batches.
type ProgressBoard interface {
	ProgressPosts(ctx context.Context, batches []string) (map[string][]store.ProgressPost, error)
}
