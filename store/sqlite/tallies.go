package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// SumDone implements [store.Tallies].
func (db *DB) SumDone(
	ctx context.Context, chunks map[string][]int,
) (map[string]store.DoneChunks, error) {
	sums := map[string]store.DoneChunks{}
	err := db.snapshot(ctx, func(s *session) error {
		if err := s.sumDone(ctx, slices.Collect(maps.Keys(chunks)), sums); err != nil {
			return err
		}
		return s.whichDone(ctx, chunks, sums)
	})
	if err != nil {
		return nil, fmt.Errorf("sum up done chunks: %w", err)
	}
	return sums, nil
}

func (s *session) sumDone(
	ctx context.Context, batches []string, sums map[string]store.DoneChunks,
) error {
	list, err := jsonList(batches)
	if err != nil {
		return err
	}
	return s.rows(ctx, `SELECT batch, sum(completed), sum(failed) FROM chunks
			WHERE done AND batch IN (SELECT value FROM json_each(?)) GROUP BY batch`, []any{list},
		func(rows tables.Row) error {
			var batch string
			var sum store.DoneChunks
			err := rows.Scan(&batch, &sum.Completed, &sum.Failed)
			sums[batch] = sum
			return err
		})
}

// whichDone adds those of the chunks that are done.
func (s *session) whichDone(
	ctx context.Context, chunks map[string][]int, sums map[string]store.DoneChunks,
) error {
	var asked [][2]any
	for batch := range sums {
		for _, index := range chunks[batch] {
			asked = append(asked, [2]any{batch, index})
		}
	}
	if len(asked) == 0 {
		return nil
	}
	list, err := jsonList(asked)
	if err != nil {
		return err
	}
	return s.rows(ctx, `SELECT c.batch, c.idx FROM json_each(?) AS asked CROSS JOIN chunks AS c
			ON c.batch = asked.value ->> 0 AND c.idx = asked.value ->> 1 WHERE c.done`, []any{list},
		func(rows tables.Row) error {
			var batch string
			var index int
			err := rows.Scan(&batch, &index)
			sum := sums[batch]
			sum.Done = append(sum.Done, index)
			sums[batch] = sum
			return err
		})
}
