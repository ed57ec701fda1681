package lead

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Owners holds the leases of dispatchers.
type Owners interface {
	Register(ctx context.Context, node string, ttl time.Duration) (store.Owner, error)
	Renew(ctx context.Context, o store.Owner, ttl time.Duration) error
	Unregister(ctx context.Context, o store.Owner) error
	Join(ctx context.Context, o store.Owner, team string) (members int, err error)
	LiveOwners(ctx context.Context, owners []store.Owner) ([]store.Owner, error)
}

// Leads makes owners the leaders of runners and models.
type Leads interface {
	Lead(ctx context.Context, o store.Owner, names []string) (epoch int64,
		others map[string]string, err error)
	Leaders(ctx context.Context, names []string) (map[string]string, error)
	LastLeads(ctx context.Context, names []string) (map[string]store.LastLead, error)
	Resign(ctx context.Context, o store.Owner, names []string) error
}

// Posts is the part of the store that holds what other processes have done.
type Posts interface {
	ProgressPosts(ctx context.Context, batches []string) (map[string][]store.ProgressPost, error)
}

// Done is the part of the store that says which chunks are done.
type Done interface {
	LiveOwners(ctx context.Context, owners []store.Owner) ([]store.Owner, error)
	SumDone(ctx context.Context, chunks map[string][]int) (map[string]store.DoneChunks, error)
	Chunks(ctx context.Context, batch string) ([]store.Chunk, error)
}
