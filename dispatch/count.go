package dispatch

import (
	"context"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
)

// counter counts what the store has of batches: the lines left and the results.
type counter struct {
	metadata  Metadata
	journals  Journals
	runs      *work.Runs
	remaining *work.Remaining
}

// Recount counts the lines left of every batch and gives the planner the new counts, but not of
// stopped batches: the planner would take them for new ones. Each run counts its results again
// before its next claim. Those that hold chunks do so now, chunk by chunk.
func (ct *counter) Recount(ctx context.Context) error {
	if err := ct.remaining.Count(ctx); err != nil {
		return err
	}
	var holding []*work.Run
	ct.runs.Each(func(r *work.Run) {
		if r.Outdate(ct.remaining) {
			holding = append(holding, r)
		}
	})
	for _, r := range holding {
		if err := ct.Count(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Count counts the results that the store has of a run's batch, unless that was done since this
// process began to lead.
func (ct *counter) Count(ctx context.Context, r *work.Run) error {
	return r.Count(func() (chunks []store.Chunk, behind map[int]store.Tally, err error) {
		chunks, err = ct.metadata.Chunks(ctx, r.ID)
		if err == nil && r.Limited {
			behind, err = ct.leftBehind(ctx, chunks)
		}
		return chunks, behind, err
	})
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
			t = work.Plus(t, work.TallyOf(rec))
			return nil
		})
		if err != nil {
			return nil, err
		}
		behind[c.Index] = t
	}
	return behind, nil
}
