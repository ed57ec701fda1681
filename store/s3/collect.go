package s3

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// collectUntil removes the parts of old objects that were never completed, until ctx ends. The
// first time is a random one, since all processes do it.
func (b *Bucket) collectUntil(ctx context.Context) {
	next := rand.N(incompleteAfter)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		next = incompleteAfter
		removed, err := b.Collect(ctx, incompleteAfter)
		if err != nil && ctx.Err() == nil {
			b.opts.Logger.WarnContext(ctx, "could not remove the parts of objects that were "+
				"never completed; trying again later", "error", err)
		}
		if removed > 0 {
			b.opts.Logger.InfoContext(ctx, "removed the parts of objects that were never "+
				"completed", "objects", removed)
		}
	}
}

// Collect removes the parts of objects that were begun longer than age ago and never completed, as
// a crash leaves them, and returns the number of such objects.
func (b *Bucket) Collect(ctx context.Context, age time.Duration) (removed int, err error) {
	type begun struct{ key, id string }
	var old []begun
	before := time.Now().Add(-age)
	err = b.listUploads(ctx, func(key, id string, at time.Time) error {
		if at.Before(before) {
			old = append(old, begun{key, id})
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("list incomplete objects: %w", err)
	}
	for _, u := range old {
		if err := b.abortUpload(ctx, u.key, u.id); err != nil {
			return removed, fmt.Errorf("remove the parts of %s: %w", u.key, err)
		}
		removed++
	}
	return removed, nil
}
