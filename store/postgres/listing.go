package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidefill/tidefill/store"
)

// position is a position in the order of a listing.
type position struct{ at, seq int64 }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.seq, q.seq))
}

// span is a range of positions, without its bounds.
type span struct{ from, to position }

// listing is a BatchQuery as scans of indexes: a statement for each span, which scans the entries
// of each state in order and joins them.
type listing struct {
	tenant      string
	states      []string
	tags        []int64 // the first one selects the index entries, the others are filters
	sort, other string  // columns: created and due, or due and created
	ascending   bool
	spans       []span // in the order of the listing
	low, high   int64  // bounds of the other column, both included
	limit       *int64 // nil: none
}

var allStates = []string{
	string(store.Validating), string(store.InProgress), string(store.Finalizing),
	string(store.Completed), string(store.Failed), string(store.Expired),
	string(store.Cancelling), string(store.Cancelled),
}

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
	l := newListing(tenant, q)
	if err := db.prepareListing(ctx, &l, q.After); err != nil {
		return page, err
	}
	for _, within := range l.spans {
		left := l.limit
		if left != nil {
			rest := *left - int64(len(page.Items))
			left = &rest
		}
		var found []string
		err := db.read(ctx, func(s *steps) {
			found = nil
			s.rows(l.query(), l.arguments(within, left), func(rows pgx.Rows) error {
				var id string
				err := rows.Scan(&id)
				found = append(found, plain(id))
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

func newListing(tenant string, q store.BatchQuery) listing {
	l := listing{
		tenant:    text(tenant),
		states:    allStates,
		tags:      queryTags(tenant, q),
		sort:      "created",
		other:     "due",
		ascending: q.Ascending,
		limit:     limitOrAll(q.Limit),
	}
	if len(q.States) > 0 {
		l.states = nil
		for _, state := range slices.Compact(slices.Sorted(slices.Values(q.States))) {
			l.states = append(l.states, string(state))
		}
	}
	low, high := between(q.CreatedAfter, q.CreatedBefore, math.MaxInt64)
	// A batch without a deadline is within no bounds.
	l.low, l.high = between(q.DeadlineAfter, q.DeadlineBefore, never-1)
	if q.DeadlineAfter.IsZero() && q.DeadlineBefore.IsZero() {
		l.high = never
	}
	if q.Order == store.ByDeadline {
		l.sort, l.other = l.other, l.sort
		low, high, l.low, l.high = l.low, l.high, low, high
	}
	l.spans = []span{{position{low, math.MinInt64}, position{high, math.MaxInt64}}}
	if q.Order == store.ByDeadline && !q.Ascending {
		l.spans = undatedLast(l.spans[0])
	}
	return l
}

// undatedLast divides a descending span of deadlines, so that batches without one are last although
// their column sorts first.
func undatedLast(all span) []span {
	dated, undated := all, all
	undated.from = position{never, math.MinInt64}
	if dated.to.compare(undated.from) > 0 {
		dated.to = undated.from
	}
	return []span{dated, undated}
}

// between returns the included bounds of two excluded ones. A zero time is no bound.
func between(after, before time.Time, highest int64) (low, high int64) {
	low, high = math.MinInt64, highest
	if !after.IsZero() {
		low = micros(after) + 1
	}
	if !before.IsZero() {
		high = micros(before.Add(time.Microsecond-1)) - 1
	}
	return low, high
}

// prepareListing finds where the page starts, and which tag has the fewest batches. It asks the
// server only if the query needs it.
func (db *DB) prepareListing(ctx context.Context, l *listing, after string) error {
	if after == "" && len(l.tags) < 2 {
		return nil
	}
	var start position
	counts := map[int64]int64{}
	err := db.read(ctx, func(s *steps) {
		start = position{}
		s.row("SELECT "+l.sort+", seq FROM batches WHERE id = @id AND tenant = @tenant",
			args{"id": text(after), "tenant": l.tenant}, &start.at, &start.seq)
		if len(l.tags) < 2 {
			return
		}
		// up to a thousand batches are counted
		s.rows(`SELECT tag, (SELECT count(*) FROM
				(SELECT 1 FROM batch_tags AS t WHERE t.tag = tags.tag LIMIT 1000) AS few)
			FROM unnest(@tags::bigint[]) AS tags (tag)`, args{"tags": l.tags},
			func(rows pgx.Rows) error {
				var tag, n int64
				err := rows.Scan(&tag, &n)
				counts[tag] = n
				return err
			})
	})
	if err != nil {
		return err
	}
	// The rarest tag first, for the shortest scan.
	slices.SortFunc(l.tags, func(a, b int64) int { return cmp.Compare(counts[a], counts[b]) })
	if after == "" {
		return nil
	}
	if start.seq == 0 {
		return fmt.Errorf("after %s: %w", after, store.ErrBadCursor)
	}
	l.skipTo(start)
	return nil
}

// skipTo removes the positions up to the last batch of the previous page.
func (l *listing) skipTo(after position) {
	if len(l.spans) > 1 && after.at == never {
		l.spans = l.spans[1:]
	}
	first := &l.spans[0]
	if l.ascending && after.compare(first.from) > 0 {
		first.from = after
	}
	if !l.ascending && after.compare(first.to) < 0 {
		first.to = after
	}
}

// query returns the statement of a span. There are few different ones, so that all stay prepared.
func (l listing) query() string {
	direction := " DESC"
	if l.ascending {
		direction = ""
	}
	from, id, where := "batches AS b", "b.id", "b.tenant = @tenant"
	if len(l.tags) > 0 {
		// The ids are read for the batches of the page only.
		from, id = "batch_tags AS b", "(SELECT id FROM batches AS i WHERE i.seq = p.seq)"
		where = "b.tag = @tag0"
	}
	columns := "b." + l.sort + " AS at, b.seq"
	if len(l.tags) == 0 {
		columns, id = columns+", b.id", "p.id"
	}
	for i := range l.tags[min(1, len(l.tags)):] {
		where += fmt.Sprintf(` AND EXISTS (SELECT 1 FROM batch_tags AS t
			WHERE t.seq = b.seq AND t.tag = @tag%d)`, i+1)
	}
	order := "b." + l.sort + direction + ", b.seq" + direction
	return "SELECT " + id + ` FROM unnest(@states::text[]) AS s (state)
		CROSS JOIN LATERAL (SELECT ` + columns + " FROM " + from + " WHERE " + where + " AND b.state = s.state AND (b." + l.sort +
		", b.seq) > (@from_at::bigint, @from_seq::bigint) AND (b." + l.sort +
		", b.seq) < (@to_at::bigint, @to_seq::bigint) AND b." + l.other +
		" BETWEEN @low AND @high ORDER BY " + order + " LIMIT @limit::bigint) AS p ORDER BY p.at" +
		direction + ", p.seq" + direction + " LIMIT @limit::bigint"
}

func (l listing) arguments(within span, limit *int64) args {
	all := args{"tenant": l.tenant, "states": l.states, "from_at": within.from.at,
		"from_seq": within.from.seq, "to_at": within.to.at, "to_seq": within.to.seq, "low": l.low,
		"high": l.high, "limit": limit}
	for i, tag := range l.tags {
		all[fmt.Sprintf("tag%d", i)] = tag
	}
	return all
}
