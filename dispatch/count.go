package dispatch

import (
	"context"
	"slices"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// recount counts what is left of every batch, corrects what the planner believes and has each run
// count its results again before its next claim.
func (s *session) recount(ctx context.Context) error {
	if err := s.countLeft(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		r.mu.Lock()
		r.counted = false
		put := planned(&r.batch)
		put.Models = plannedModels(&r.batch, s.leftOf(&r.batch))
		r.mu.Unlock()
		s.inbox.put(plan.BatchPut{Batch: put})
	}
	return nil
}

// countLeft counts what is left of every batch.
func (s *session) countLeft(ctx context.Context) error {
	left, err := s.deps.Metadata.LinesLeft(ctx)
	if err == nil {
		s.left.Store(&left)
	}
	return err
}

// noneLeft reports whether all chunks of a batch were done at the last recount.
func (s *session) noneLeft(b *store.Batch) bool {
	left := s.leftOf(b)
	return !slices.ContainsFunc(b.Models, func(m store.ModelLines) bool {
		return left(m.Model) > 0
	})
}

// leftOf counts the lines of each model of a batch that are left, as of the last recount; all of
// them for a batch that is younger.
func (s *session) leftOf(b *store.Batch) func(model string) int {
	if counted := s.left.Load(); counted != nil {
		if left, known := (*counted)[b.ID]; known {
			return func(model string) int { return left[model] }
		}
	}
	return func(model string) int {
		for _, m := range b.Models {
			if m.Model == model {
				return m.Lines
			}
		}
		return 0
	}
}

// count counts the results that the store holds of a run's batch, if that was not done since this
// dispatcher began to lead.
func (s *session) count(ctx context.Context, r *run) error {
	r.posting.Lock() // so that no chunk is finished between the reading and the counting
	defer r.posting.Unlock()
	r.mu.Lock()
	counted := r.counted
	r.mu.Unlock()
	if counted {
		return nil
	}
	chunks, err := s.deps.Metadata.Chunks(ctx, r.id)
	if err != nil {
		return err
	}
	behind := map[int]store.Tally{}
	if r.limited {
		if behind, err = s.leftBehind(ctx, chunks); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := map[string]int{}
	r.done = store.Tally{}
	for _, c := range chunks {
		switch {
		case c.Done:
			r.done = plus(r.done, c.Tally)
		case r.chunks[c.Index] != nil: // counted as it goes
			delete(behind, c.Index)
			left[c.Model] += c.Count
		default:
			left[c.Model] += c.Count
		}
	}
	r.behind, r.counted = behind, true
	put := planned(&r.batch)
	put.Models = plannedModels(&r.batch, func(model string) int { return left[model] })
	s.inbox.put(plan.BatchPut{Batch: put})
	return nil
}

// leftBehind counts what the journals hold of chunks that were claimed before and are not done.
func (s *session) leftBehind(
	ctx context.Context, chunks []store.Chunk,
) (map[int]store.Tally, error) {
	behind := map[int]store.Tally{}
	for _, c := range chunks {
		if c.Done || c.Epoch == 0 {
			continue
		}
		var t store.Tally
		err := s.deps.Journals.Read(ctx, c.ChunkID, func(rec store.Record, _ store.Location) error {
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
