package claim

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

const (
	// claimsLast is the time that the chunks of one claim are to last, so that a fast pool does
	// not need a transaction for each. They take no memory until they are read.
	claimsLast = 4 * time.Second
	// mostClaimed limits the chunks of one claim.
	mostClaimed = 64
)

// claimPace holds the number of chunks of a model that were claimed last, and the time.
type claimPace struct {
	size int
	at   time.Time
}

// next returns how many chunks to claim at a time, since the last ones are used up.
func (p *claimPace) next(now time.Time) int {
	switch lasted := now.Sub(p.at); {
	case lasted < claimsLast:
		p.size = min(2*p.size, mostClaimed)
	case lasted > 2*claimsLast:
		p.size /= 2
	}
	p.size = max(p.size, 1)
	p.at = now
	return p.size
}

// claimPaces holds the paces of the models. It is safe for concurrent use.
type claimPaces struct {
	mu      sync.Mutex
	byModel map[string]*claimPace
}

// next returns how many chunks of a model to claim at a time. It forgets models of which none was
// claimed for long.
func (ps *claimPaces) next(model string, now time.Time) int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.byModel == nil {
		ps.byModel = map[string]*claimPace{}
	}
	p := ps.byModel[model]
	if p == nil {
		maps.DeleteFunc(ps.byModel, func(_ string, p *claimPace) bool {
			return now.Sub(p.at) >= 2*claimsLast
		})
		p = &claimPace{}
		ps.byModel[model] = p
	}
	return p.next(now)
}

// claim returns the next chunk of a model that this process leads, and claims some if it has none
// ahead. The chunk counts as held until it is finished or abandoned. If the store's answer gets
// lost, chunks are claimed but not held, and the next claim returns them.
func (cl *Claimer) claim(
	ctx context.Context, r *work.Run, model string,
) (c store.Chunk, ok bool, err error) {
	release, leads := cl.Leading.Hold(model)
	if !leads {
		return c, false, nil
	}
	defer release()
	c, ok, stopped, err := r.NextChunk(model, func(held []int, canary bool) ([]store.Chunk, error) {
		n := 1
		if !canary {
			n = cl.paces.next(model, time.Now())
		}
		claimed, err := cl.Metadata.ClaimChunks(ctx, cl.Owner, r.ID, model, n, held)
		if err == nil {
			cl.prepare(ctx, claimed)
		}
		return claimed, err
	})
	if stopped {
		cl.AbandonAhead(r, func(string) bool { return true })
	}
	return c, ok, err
}

// prepare has the journals of chunks opened faster, if there are several. Opening reports errors.
func (cl *Claimer) prepare(ctx context.Context, claimed []store.Chunk) {
	if p, can := cl.Journals.(store.JournalPreparer); can && len(claimed) > 1 {
		_ = p.Prepare(ctx, claimed)
	}
}

// GiveBack gives back the chunks of models that no runner of this process serves any more: here
// those that are claimed ahead, and by way of the loop those of which no line is in flight.
func (cl *Claimer) GiveBack(models map[string]bool) {
	cl.Runs.Each(func(r *work.Run) {
		cl.AbandonAhead(r, func(model string) bool { return models[model] })
	})
	cl.Inbox.Put(work.ModelsUnserved{Models: models})
}

// AbandonAhead gives back the chunks that a run has claimed ahead, of the models for which leave
// returns true.
func (cl *Claimer) AbandonAhead(r *work.Run, leave func(model string) bool) {
	cl.abandon(r, r.LeaveAhead(leave)...)
}

// abandon gives back chunks that were claimed and not taken.
func (cl *Claimer) abandon(r *work.Run, chunks ...store.Chunk) {
	if len(chunks) == 0 {
		return
	}
	stopped := r.NotRead(chunks)
	cl.Tasks.Start(func(ctx context.Context) {
		for _, c := range chunks {
			cl.putBack(ctx, c)
		}
		if stopped { // the reconciler waits for this
			cl.Batches.Add(r.ID)
		}
	})
}
