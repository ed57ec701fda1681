package segments

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// preparedFor is the time for which Open may use what Prepare has read. It is below the time for
// which objects stay that were compacted meanwhile.
const preparedFor = time.Minute

// prepared holds the ranges of journals that Prepare has fenced and Open has not opened yet. The
// zero value has none.
type prepared struct {
	mu      sync.Mutex
	byChunk map[store.ChunkID]fenced
}

type fenced struct {
	epoch  int64
	ranges []Range
	at     time.Time
}

// Prepare implements [store.JournalPreparer].
func (js *Journals) Prepare(ctx context.Context, chunks []store.Chunk) error {
	fences := make([]Fence, len(chunks))
	for i, c := range chunks {
		if err := checkBatch(c.Batch); err != nil {
			return fmt.Errorf("prepare journals: %w", err)
		}
		fences[i] = Fence{c.ChunkID, c.Epoch}
	}
	if len(fences) == 0 {
		return nil
	}
	ranges, err := js.registry.Fence(ctx, fences...)
	if err != nil {
		return fmt.Errorf("prepare journals: %w", err)
	}
	js.prepared.add(fences, ranges)
	return nil
}

func (p *prepared) add(fences []Fence, ranges []Range) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, f := range p.byChunk { // those that were given back
		if now.Sub(f.at) > preparedFor {
			delete(p.byChunk, id)
		}
	}
	if p.byChunk == nil {
		p.byChunk = map[store.ChunkID]fenced{}
	}
	for _, f := range fences {
		p.byChunk[f.Chunk] = fenced{epoch: f.Epoch, at: now}
	}
	for _, r := range ranges {
		f := p.byChunk[r.Chunk]
		f.ranges = append(f.ranges, r)
		p.byChunk[r.Chunk] = f
	}
}

// take returns what was prepared for a fence, once.
func (p *prepared) take(f Fence) (ranges []Range, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.byChunk[f.Chunk]
	delete(p.byChunk, f.Chunk)
	return found.ranges, ok && found.epoch == f.Epoch && time.Since(found.at) <= preparedFor
}
