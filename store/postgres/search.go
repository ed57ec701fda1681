package postgres

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// SearchBatchIDs implements [store.BatchLists].
func (db *DB) SearchBatchIDs(
	ctx context.Context, q store.BatchSearch,
) (page store.Page[string], err error) {
	known := 1
	err = db.read(ctx, func(s *steps) {
		page.Items = nil
		if q.Before != "" {
			s.row("SELECT count(*) FROM batches WHERE id = @before",
				args{"before": text(q.Before)}, &known)
		}
		s.rows(`SELECT id FROM batches
			WHERE (@before::text = '' OR seq < (SELECT seq FROM batches WHERE id = @before::text))
				AND (@tenant::text = '' OR tenant = @tenant::text)
				AND starts_with(id, @prefix::text)
				AND (cardinality(@states::text[]) = 0 OR state = ANY(@states::text[]))
			ORDER BY seq DESC LIMIT @limit::bigint`,
			args{"before": text(q.Before), "tenant": text(q.Tenant), "prefix": text(q.Prefix),
				"states": texts(q.States), "limit": limitOrAll(q.Limit)},
			tables.Collect(&page.Items, tables.ScanID))
	})
	if err == nil && known == 0 {
		err = fmt.Errorf("before %s: %w", q.Before, store.ErrBadCursor)
	}
	if err != nil {
		return store.Page[string]{}, fmt.Errorf("search batches: %w", err)
	}
	return page.Within(q.Limit), nil
}
