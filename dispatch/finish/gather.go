package finish

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// results holds the places of all results of a batch.
type results struct {
	journals store.JournalReader
	at       []place       // by line number
	lost     []store.Chunk // chunks without a result of some line
	usage    batchfile.Usage
	attempts int64
	failures store.Failures // without runners
}

// gather reads the journals of all chunks. It fences those that are not done first, so that no
// other process adds to them.
func (fz *Finalizer) gather(ctx context.Context, b *store.Batch) (*results, error) {
	chunks, err := fz.Metadata.Chunks(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	if err := fz.fence(ctx, b); err != nil {
		return nil, err
	}
	found := &results{at: make([]place, b.Counts.Total)}
	if found.journals, err = fz.settled(ctx, chunks); err != nil {
		return nil, err
	}
	for _, c := range chunks {
		missing := c.Count
		err := found.journals.Read(ctx, c.ChunkID,
			func(rec store.Record, at store.Location) error {
				if int(rec.Line) >= len(found.at) {
					return fmt.Errorf("journal of chunk %d has a result of line %d of %d", c.Index,
						rec.Line,
						len(found.at))
				}
				if found.at[rec.Line].none() {
					found.at[rec.Line] = placeOf(c.Index, at, rec.Failed)
					found.usage.Add(rec.Usage)
					found.attempts += int64(rec.Attempts)
					if rec.Failed {
						found.failures.Add(work.CauseOf(rec.Result))
					}
					missing--
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
		if missing > 0 {
			found.lost = append(found.lost, c)
		}
	}
	return found, nil
}

// settled returns the journals of chunks to which nothing is added any more.
func (fz *Finalizer) settled(
	ctx context.Context, chunks []store.Chunk,
) (store.JournalReader, error) {
	journals, can := fz.Journals.(store.SettledJournals)
	if !can {
		return fz.Journals, nil
	}
	ids := make([]store.ChunkID, len(chunks))
	for i, c := range chunks {
		ids[i] = c.ChunkID
	}
	return journals.Settled(ctx, ids)
}

// fence claims the chunks left of a batch that ends early and opens their journals, which then
// refuse writers with an older claim. It marks them done with the results that they have, so that
// these are in the ledger.
func (fz *Finalizer) fence(ctx context.Context, b *store.Batch) error {
	if b.Ending == store.Completed {
		return nil // all chunks are done: there is no older claim
	}
	for _, m := range b.Models {
		claimed, err := fz.Metadata.ClaimChunks(ctx, fz.Owner, b.ID, m.Model, 1<<30, nil)
		if err != nil {
			return err
		}
		for i, c := range claimed {
			if err := fz.fenceChunk(ctx, c); err != nil {
				return errors.Join(err, fz.release(context.WithoutCancel(ctx), claimed[i:]))
			}
		}
	}
	return nil
}

// fenceTimeout limits the time to release what was fenced.
const fenceTimeout = 5 * time.Second

// release releases what fence has claimed, so that the next try can claim it.
func (fz *Finalizer) release(ctx context.Context, claimed []store.Chunk) error {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	var faults []error
	for _, c := range claimed {
		faults = append(faults, fz.Metadata.ReleaseChunk(ctx, fz.Owner, c))
	}
	return errors.Join(faults...)
}

func (fz *Finalizer) fenceChunk(ctx context.Context, c store.Chunk) error {
	lines := map[uint32]bool{}
	j, err := fz.Journals.Open(ctx, c.ChunkID, c.Epoch, func(rec store.Record) {
		if !lines[rec.Line] { // of several results of a line the first one counts
			lines[rec.Line] = true
			c.Tally = work.Plus(c.Tally, work.TallyOf(rec))
		}
	}, func(store.Commit) {})
	if err != nil {
		return err
	}
	if err := j.Close(ctx); err != nil {
		return err
	}
	return fz.Metadata.FinishChunks(ctx, fz.Owner, c)
}
