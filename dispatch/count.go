package dispatch

import (
	"context"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// counter counts what the store has of batches: the lines left and the results.
type counter struct {
	metadata  Metadata
	journals  Journals
	runs      *runs
	remaining *remaining
	inbox     *inbox
}

// recount counts the lines left of every batch and gives the planner the new counts, but not of
// stopped batches: the planner would take them for new ones. Each run counts its results again
// before its next claim. Those that hold chunks do so now, chunk by chunk.
func (ct *counter) recount(ctx context.Context) error {
	if err := ct.remaining.count(ctx); err != nil {
		return err
	}
	var holding []*run
	ct.runs.each(func(r *run) {
		r.mu.Lock()
		defer r.mu.Unlock() // after the notification: that of a stop comes later
		r.counted = false
		switch {
		case r.stopped:
		case len(r.chunks)+len(r.reading) > 0:
			holding = append(holding, r)
		default:
			put := planBatch(&r.batch)
			put.Models = planModels(&r.batch, ct.remaining.of(&r.batch))
			ct.inbox.event(plan.BatchPut{Batch: put})
		}
	})
	for _, r := range holding {
		if err := ct.count(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// count counts the results that the store has of a run's batch, unless that was done since this
// process began to lead.
func (ct *counter) count(ctx context.Context, r *run) error {
	r.finishing.Lock() // so that no chunk is finished between the reading and the counting
	defer r.finishing.Unlock()
	r.mu.Lock()
	counted := r.counted
	r.mu.Unlock()
	if counted {
		return nil
	}
	chunks, err := ct.metadata.Chunks(ctx, r.id)
	if err != nil {
		return err
	}
	behind := map[int]store.Tally{}
	if r.limited {
		if behind, err = ct.leftBehind(ctx, chunks); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = store.Tally{}
	for _, c := range chunks {
		if back, was := r.givenBack[c.Index]; was && !c.Done && c.Epoch == back.Epoch {
			delete(behind, c.Index) // its results are among the live ones
		} else if was {
			r.live = minus(r.live, back.Tally)
			delete(r.givenBack, c.Index)
		}
		switch {
		case c.Done:
			r.done = plus(r.done, c.Tally)
		case r.chunks[c.Index] != nil: // its results are counted as they come
			delete(behind, c.Index)
		}
	}
	r.behind, r.counted = behind, true
	if !r.stopped {
		ct.inbox.put(chunksCounted{r.batch, chunks})
	}
	return nil
}

// leftBehind counts the results in the journals of chunks that were claimed before and are not
// done.
func (ct *counter) leftBehind(
	ctx context.Context, chunks []store.Chunk,
) (map[int]store.Tally, error) {
	behind := map[int]store.Tally{}
	for _, c := range chunks {
		if c.Done || c.Epoch == 0 {
			continue
		}
		var t store.Tally
		err := ct.journals.Read(ctx, c.ChunkID, func(rec store.Record, _ store.Location) error {
			t = plus(t, tallyOf(rec))
			return nil
		})
		if err != nil {
			return nil, err
		}
		behind[c.Index] = t
	}
	return behind, nil
}
