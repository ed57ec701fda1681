package api

import (
	"sync"

	"github.com/tidefill/tidefill/store"
)

// peaks remembers the highest counts shown of batches that run. A dispatcher that dies takes its
// words about unfinished chunks with it until a journal is replayed, and users were promised that
// the completed only grow.
type peaks struct {
	mu  sync.Mutex
	ofs map[string]peak
}

type peak struct{ completed, failed int }

// mostPeaks bounds the memory; beyond it all is forgotten, which costs no more than a count that
// steps back once.
const mostPeaks = 100_000

// raise returns p with counts no lower than those seen before.
func (k *peaks) raise(b store.Batch, p store.Progress) store.Progress {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b.State.Terminal() {
		delete(k.ofs, b.ID)
		return p
	}
	seen := k.ofs[b.ID]
	p.Completed = max(p.Completed, seen.completed)
	p.Failed = max(p.Failed, seen.failed)
	if now := (peak{p.Completed, p.Failed}); now != seen {
		if k.ofs == nil || len(k.ofs) >= mostPeaks {
			k.ofs = make(map[string]peak)
		}
		k.ofs[b.ID] = now
	}
	return p
}
