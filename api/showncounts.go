package api

import (
	"sync"

	"github.com/tidefill/tidefill/store"
)

// shownCounts remembers the highest counts shown of batches that run. A dispatcher that dies takes its
// words about unfinished chunks with it until a journal is replayed, and users were promised that
// the completed only grow.
type shownCounts struct {
	mu      sync.Mutex
	byBatch map[string]counts
}

type counts struct{ completed, failed int }

// maxShownCounts bounds the memory; beyond it all is forgotten, which costs no more than a count that
// steps back once.
const maxShownCounts = 100_000

// raise returns p with counts no lower than those seen before.
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
