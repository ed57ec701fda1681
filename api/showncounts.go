package api

import (
	"sync"

	"github.com/tidefill/tidefill/store"
)

// shownCounts holds the highest counts that were shown of running batches, so that the counts that
// users see never decrease. The reported counts do when a dispatcher crashes, until another one has
// replayed its journals.
type shownCounts struct {
	mu      sync.Mutex
	byBatch map[string]counts
}

type counts struct{ completed, failed int }

// maxShownCounts limits the memory. Beyond it, all counts are dropped, and a count may decrease
// once.
const maxShownCounts = 100_000

// raise returns p with counts that are not below those returned before.
func (k *shownCounts) raise(b store.Batch, p store.Progress) store.Progress {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.State.Terminal() {
		delete(k.byBatch, b.ID)
		return p
	}
	seen := k.byBatch[b.ID]
	p.Completed = max(p.Completed, seen.completed)
	p.Failed = max(p.Failed, seen.failed)
	if now := (counts{p.Completed, p.Failed}); now != seen {
		if k.byBatch == nil || len(k.byBatch) >= maxShownCounts {
			k.byBatch = make(map[string]counts)
		}
		k.byBatch[b.ID] = now
	}
	return p
}
