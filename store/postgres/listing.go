package postgres

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// listing has a statement for each span, which scans the entries of each state in order and joins
// them.
type listing struct{ tables.Listing }

// ListBatchIDs implements [store.BatchLists].
func (db *DB) ListBatchIDs(
	ctx context.Context, tenant string, q store.BatchQuery,
) (store.Page[string], error) {
	page, err := db.listBatchIDs(ctx, tenant, q)
	if err != nil {
		return store.Page[string]{}, fmt.Errorf("list ids of batches: %w", err)
	}
	return page, nil
}

func (db *DB) listBatchIDs(
	ctx context.Context, tenant string, q store.BatchQuery,
) (page store.Page[string], err error) {
	l := listing{tables.NewListing(tenant, q)}
	if err := db.prepareListing(ctx, &l, q.After); err != nil {
		return page, err
	}
	for _, within := range l.Spans {
		left := limitOrAll(l.Limit)
		if left != nil {
			rest := *left - int64(len(page.Items))
			left = &rest
		}
		var found []string
		err := db.read(ctx, func(s *steps) {
			found = nil
			s.rows(l.query(), l.arguments(within, left), func(row tables.Row) error {
				var id string
				err := row.Scan(&id)
				found = append(found, id)
				return err
			})
		})
		if err != nil {
			return page, err
		}
		page.Items = append(page.Items, found...)
		if page.More = q.Limit > 0 && len(page.Items) > q.Limit; page.More {
			page.Items = page.Items[:q.Limit]
			return page, nil
		}
	}
	return page, nil
}

// prepareListing finds where the page starts, and which tag has the fewest batches. It asks the
// server only if the query needs it.
func (db *DB) prepareListing(ctx context.Context, l *listing, after string) error {
	if after == "" && len(l.Tags) < 2 {
		return nil
	}
	var start tables.Position
	counts := map[int64]int{}
	err := db.read(ctx, func(s *steps) {
		start = tables.Position{}
		s.row("SELECT "+l.Sort+", seq FROM batches WHERE id = @id AND tenant = @tenant",
			args{"id": text(after), "tenant": text(l.Tenant)}, &start.At, &start.Seq)
		if len(l.Tags) < 2 {
			return
		}
		// up to a thousand batches are counted
		s.rows(`SELECT tag, (SELECT count(*) FROM
				(SELECT 1 FROM batch_tags AS t WHERE t.tag = tags.tag LIMIT 1000) AS few)
			FROM unnest(@tags::bigint[]) AS tags (tag)`, args{"tags": l.Tags},
			tables.Index(counts, tables.ScanPair[int64, int]))
	})
	if err != nil {
		return err
	}
	l.RarestFirst(counts)
	if after == "" {
		return nil
	}
	if start.Seq == 0 {
		return fmt.Errorf("after %s: %w", after, store.ErrBadCursor)
	}
	l.SkipTo(start)
	return nil
}

// query returns the statement of a span. There are few different ones, so that all stay prepared.
func (l listing) query() string {
	direction := " DESC"
	if l.Ascending {
		direction = ""
	}
	from, id, where := "batches AS b", "b.id", "b.tenant = @tenant"
	if len(l.Tags) > 0 {
		// The ids are read for the batches of the page only.
		from, id = "batch_tags AS b", "(SELECT id FROM batches AS i WHERE i.seq = p.Seq)"
		where = "b.tag = @tag0"
	}
	columns := "b." + l.Sort + " AS at, b.seq"
	if len(l.Tags) == 0 {
		columns, id = columns+", b.id", "p.id"
	}
	for i := range l.Tags[min(1, len(l.Tags)):] {
		where += fmt.Sprintf(` AND EXISTS (SELECT 1 FROM batch_tags AS t
			WHERE t.seq = b.seq AND t.tag = @tag%d)`, i+1)
	}
	order := "b." + l.Sort + direction + ", b.seq" + direction
	return "SELECT " + id + ` FROM unnest(@states::text[]) AS s (state)
		CROSS JOIN LATERAL (SELECT ` + columns + " FROM " + from + " WHERE " + where + " AND b.state = s.state AND (b." + l.Sort +
		", b.seq) > (@from_at::bigint, @from_seq::bigint) AND (b." + l.Sort +
		", b.seq) < (@to_at::bigint, @to_seq::bigint) AND b." + l.Other +
		" BETWEEN @low AND @high ORDER BY " + order + " LIMIT @limit::bigint) AS p ORDER BY p.At" +
		direction + ", p.Seq" + direction + " LIMIT @limit::bigint"
}

func (l listing) arguments(within tables.Span, limit *int64) args {
	all := args{"tenant": text(l.Tenant), "states": texts(l.States), "from_at": within.From.At,
		"from_seq": within.From.Seq, "to_at": within.To.At, "to_seq": within.To.Seq, "low": l.Low,
		"high": l.High, "limit": limit}
	for i, tag := range l.Tags {
		all[fmt.Sprintf("tag%d", i)] = tag
	}
	return all
}
