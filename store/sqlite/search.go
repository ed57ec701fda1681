package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// SearchBatchIDs implements [store.BatchLists].
func (db *DB) SearchBatchIDs(
	ctx context.Context, q store.BatchSearch,
) (page store.Page[string], err error) {
	states, err := jsonList(q.States)
	if err == nil {
		err = db.snapshot(ctx, func(s *session) error {
			before := int64(math.MaxInt64)
			if q.Before != "" {
				err := s.row(ctx, "SELECT seq FROM batches WHERE id = ?", []any{q.Before}, &before)
				if errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("before %s: %w", q.Before, store.ErrBadCursor)
				} else if err != nil {
					return err
				}
			}
			return s.rows(ctx, `SELECT id FROM batches WHERE seq < ? AND (? = '' OR tenant = ?)
				AND substr(id, 1, ?) = ?
				AND (? = 0 OR state IN (SELECT value FROM json_each(?)))
				ORDER BY seq DESC LIMIT ?`,
				[]any{before, q.Tenant, q.Tenant, utf8.RuneCountInString(q.Prefix), q.Prefix,
					len(q.States), states, limitOrAll(q.Limit)},
				tables.Collect(&page.Items, tables.ScanID))
		})
	}
	if err != nil {
		return store.Page[string]{}, fmt.Errorf("search batches: %w", err)
	}
	return page.Within(q.Limit), nil
}
