package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// SumDone implements [store.Tallies].
func (db *DB) SumDone(
	ctx context.Context, chunks map[string][]int,
) (sums map[string]store.DoneChunks, err error) {
	if len(chunks) == 0 {
		return map[string]store.DoneChunks{}, nil
	}
	batches, asked, indexes := []string{}, []string{}, []int64{}
	for batch, list := range chunks {
		batches = append(batches, text(batch))
		for _, index := range slices.Compact(slices.Sorted(slices.Values(list))) {
			asked, indexes = append(asked, text(batch)), append(indexes, int64(index))
		}
	}
	all := args{"batches": batches, "asked": asked, "indexes": indexes}
	err = db.read(ctx, func(s *steps) {
		sums = map[string]store.DoneChunks{}
		s.rows(`SELECT c.batch, sum(c.completed)::bigint, sum(c.failed)::bigint,
				array_agg(c.idx) FILTER (WHERE a.idx IS NOT NULL)
			FROM chunks AS c LEFT JOIN unnest(@asked::text[], @indexes::bigint[]) AS a (batch, idx)
				ON a.batch = c.batch AND a.idx = c.idx
			WHERE c.done AND c.batch = ANY (@batches::text[]) GROUP BY c.batch`, all,
			func(row tables.Row) error {
				var batch string
				var sum store.DoneChunks
				err := row.Scan(&batch, &sum.Completed, &sum.Failed, &sum.Done)
				sums[batch] = sum
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("sum up done chunks: %w", err)
	}
	return sums, nil
}
