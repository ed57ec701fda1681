package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
)

// position is a position in the order of a listing.
type position struct{ at, seq int64 }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.seq, q.seq))
}

// span is a range of positions, without its bounds.
type span struct{ from, to position }

// listing is a BatchQuery as index scans: one scan for each state and span, joined in order.
type listing struct {
	tenant      string
	states      []store.State
	tags        []int64 // the first one selects the index entries, the others are filters
	sort, other string  // columns: created and due, or due and created
	ascending   bool
	spans       []span // in the order of the listing
	low, high   int64  // bounds of the other column, both included
	limit       int    // of one scan; negative: none
}

var allStates = []store.State{
	store.Validating, store.InProgress, store.Finalizing, store.Completed,
	store.Failed, store.Expired, store.Cancelling, store.Cancelled,
}

// ListBatchIDs implements [store.BatchLists].
func (db *DB) ListBatchIDs(
	ctx context.Context, tenant string, q store.BatchQuery,
) (page store.Page[string], err error) {
	err = db.snapshot(ctx, func(s *session) error {
		positions, more, err := s.positions(ctx, tenant, q)
		if err != nil {
			return err
		}
		page.More = more
		page.Items, err = s.idsAt(ctx, positions)
		return err
	})
	if err != nil {
		return store.Page[string]{}, fmt.Errorf("list ids of batches: %w", err)
	}
	return page, nil
}

// positions returns the positions of the batches of a page in order, and whether there are more.
func (s *session) positions(
	ctx context.Context, tenant string, q store.BatchQuery,
) (found []position, more bool, err error) {
	l, err := s.listing(ctx, tenant, q)
	if err != nil {
		return nil, false, err
	}
	if found, err = s.scan(ctx, l); err != nil {
		return nil, false, err
	}
	if q.Limit > 0 && len(found) > q.Limit {
		return found[:q.Limit], true, nil
	}
	return found, false, nil
}

func (s *session) listing(ctx context.Context, tenant string, q store.BatchQuery) (listing, error) {
	l := listing{
		tenant:    tenant,
		states:    allStates,
		tags:      queryTags(tenant, q),
		sort:      "created",
		other:     "due",
		ascending: q.Ascending,
		limit:     limitOrAll(q.Limit),
	}
	if len(q.States) > 0 {
		l.states = slices.Compact(slices.Sorted(slices.Values(q.States)))
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
	if q.After != "" {
		if err := s.skipTo(ctx, &l, q.After); err != nil {
			return l, err
		}
	}
	if err := s.rarestFirst(ctx, l); err != nil {
		return l, err
	}
	return l, nil
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

// skipTo removes the positions up to the last batch of the previous page.
func (s *session) skipTo(ctx context.Context, l *listing, id string) error {
	var after position
	err := s.row(ctx, "SELECT "+l.sort+", seq FROM batches WHERE id = ? AND tenant = ?",
		[]any{id, l.tenant}, &after.at, &after.seq)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("after %s: %w", id, store.ErrBadCursor)
	} else if err != nil {
		return err
	}
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
	return nil
}

// rarestFirst moves the tag with the fewest batches to the front, for the shortest scan. It counts
// up to a thousand batches.
func (s *session) rarestFirst(ctx context.Context, l listing) error {
	if len(l.tags) < 2 {
		return nil
	}
	counts := make(map[int64]int, len(l.tags))
	for _, tag := range l.tags {
		var n int
		err := s.row(
			ctx, "SELECT count(*) FROM (SELECT 1 FROM batch_tags WHERE tag = ? LIMIT 1000)",
			[]any{tag}, &n)
		if err != nil {
			return err
		}
		counts[tag] = n
	}
	slices.SortFunc(l.tags, func(a, b int64) int { return cmp.Compare(counts[a], counts[b]) })
	return nil
}

// scan returns the positions of the matching batches in order. If there are more than a page, it
// returns one more.
func (s *session) scan(ctx context.Context, l listing) (found []position, err error) {
	for _, span := range l.spans {
		query, start := l.query(span), len(found)
		for _, state := range l.states {
			err := s.rows(ctx, query, l.args(state, span), func(rows *sql.Rows) error {
				var p position
				err := rows.Scan(&p.at, &p.seq)
				found = append(found, p)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		slices.SortFunc(found[start:], func(p, q position) int {
			if l.ascending {
				return p.compare(q)
			}
			return q.compare(p)
		})
		if l.limit >= 0 && len(found) >= l.limit {
			return found[:l.limit], nil
		}
	}
	return found, nil
}

// sameTime reports whether both bounds have the same time, as in pages of batches without
// deadlines. SQLite uses the second column of an index only if the first one is compared with =.
func (s span) sameTime() bool { return s.from.at == s.to.at }

// query returns the statement of one scan. There are few different ones, so that all stay prepared.
func (l listing) query(within span) string {
	from, where := "batches AS b", "b.tenant = ?"
	if len(l.tags) > 0 {
		from, where = "batch_tags AS b", "b.tag = ?"
	}
	query := "SELECT b." + l.sort + ", b.seq FROM " + from + " WHERE " + where + " AND b.state = ?"
	if within.sameTime() {
		query += " AND b." + l.sort + " = ? AND b.seq > ? AND b.seq < ?"
	} else {
		query += " AND (b." + l.sort + ", b.seq) > (?, ?) AND (b." + l.sort + ", b.seq) < (?, ?)"
	}
	query += " AND b." + l.other + " BETWEEN ? AND ?"
	for range l.tags[min(1, len(l.tags)):] {
		query += " AND EXISTS (SELECT 1 FROM batch_tags AS t WHERE t.seq = b.seq AND t.tag = ?)"
	}
	if l.ascending {
		return query + " ORDER BY b." + l.sort + ", b.seq LIMIT ?"
	}
	return query + " ORDER BY b." + l.sort + " DESC, b.seq DESC LIMIT ?"
}

func (l listing) args(state store.State, within span) []any {
	args := []any{l.tenant, state, within.from.at, within.from.seq}
	if !within.sameTime() {
		args = append(args, within.to.at)
	}
	args = append(args, within.to.seq, l.low, l.high)
	if len(l.tags) > 0 {
		args[0] = l.tags[0]
		for _, tag := range l.tags[1:] {
			args = append(args, tag)
		}
	}
	return append(args, l.limit)
}

// idsAt returns the ids of the batches at the positions, in the order of these.
func (s *session) idsAt(ctx context.Context, positions []position) ([]string, error) {
	place := make(map[int64]int, len(positions))
	seqs := make([]int64, len(positions))
	for i, p := range positions {
		place[p.seq], seqs[i] = i, p.seq
	}
	list, err := jsonList(seqs)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(positions))
	err = s.rows(ctx, "SELECT seq, id FROM batches WHERE seq IN (SELECT value FROM json_each(?))",
		[]any{list}, func(rows *sql.Rows) error {
			var seq int64
			var id string
			err := rows.Scan(&seq, &id)
			ids[place[seq]] = id
			return err
		})
	return ids, err
}
