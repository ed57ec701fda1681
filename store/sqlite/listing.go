package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// listing joins one scan for each state and span, in order.
type listing struct{ tables.Listing }

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
) (found []tables.Position, more bool, err error) {
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
	l := listing{tables.NewListing(tenant, q)}
	if q.After != "" {
		if err := s.skipTo(ctx, &l, q.After); err != nil {
			return l, err
		}
	}
	if err := s.rarestFirst(ctx, &l); err != nil {
		return l, err
	}
	return l, nil
}

// skipTo removes the positions up to the last batch of the previous page.
func (s *session) skipTo(ctx context.Context, l *listing, id string) error {
	var after tables.Position
	err := s.row(ctx, "SELECT "+l.Sort+", seq FROM batches WHERE id = ? AND tenant = ?",
		[]any{id, l.Tenant}, &after.At, &after.Seq)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("after %s: %w", id, store.ErrBadCursor)
	} else if err != nil {
		return err
	}
	l.SkipTo(after)
	return nil
}

// rarestFirst moves the tag with the fewest batches to the front, for the shortest scan. It counts
// up to a thousand batches.
func (s *session) rarestFirst(ctx context.Context, l *listing) error {
	if len(l.Tags) < 2 {
		return nil
	}
	counts := make(map[int64]int, len(l.Tags))
	for _, tag := range l.Tags {
		var n int
		err := s.row(
			ctx, "SELECT count(*) FROM (SELECT 1 FROM batch_tags WHERE tag = ? LIMIT 1000)",
			[]any{tag}, &n)
		if err != nil {
			return err
		}
		counts[tag] = n
	}
	l.RarestFirst(counts)
	return nil
}

// scan returns the positions of the matching batches in order. If there are more than a page, it
// returns one more.
func (s *session) scan(ctx context.Context, l listing) (found []tables.Position, err error) {
	for _, span := range l.Spans {
		query, start := l.query(span), len(found)
		for _, state := range l.States {
			err := s.rows(ctx, query, l.args(state, span), func(rows tables.Row) error {
				var p tables.Position
				err := rows.Scan(&p.At, &p.Seq)
				found = append(found, p)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		slices.SortFunc(found[start:], func(p, q tables.Position) int {
			if l.Ascending {
				return p.Compare(q)
			}
			return q.Compare(p)
		})
		if l.Limit > 0 && len(found) > l.Limit {
			return found[:l.Limit+1], nil
		}
	}
	return found, nil
}

// sameTime reports whether both bounds have the same time, as in pages of batches without
// deadlines. SQLite uses the second column of an index only if the first one is compared with =.
func sameTime(s tables.Span) bool { return s.From.At == s.To.At }

// query returns the statement of one scan. There are few different ones, so that all stay prepared.
func (l listing) query(within tables.Span) string {
	from, where := "batches AS b", "b.tenant = ?"
	if len(l.Tags) > 0 {
		from, where = "batch_tags AS b", "b.tag = ?"
	}
	query := "SELECT b." + l.Sort + ", b.seq FROM " + from + " WHERE " + where + " AND b.state = ?"
	if sameTime(within) {
		query += " AND b." + l.Sort + " = ? AND b.seq > ? AND b.seq < ?"
	} else {
		query += " AND (b." + l.Sort + ", b.seq) > (?, ?) AND (b." + l.Sort + ", b.seq) < (?, ?)"
	}
	query += " AND b." + l.Other + " BETWEEN ? AND ?"
	for range l.Tags[min(1, len(l.Tags)):] {
		query += " AND EXISTS (SELECT 1 FROM batch_tags AS t WHERE t.seq = b.seq AND t.tag = ?)"
	}
	if l.Ascending {
		return query + " ORDER BY b." + l.Sort + ", b.seq LIMIT ?"
	}
	return query + " ORDER BY b." + l.Sort + " DESC, b.seq DESC LIMIT ?"
}

func (l listing) args(state store.State, within tables.Span) []any {
	args := []any{l.Tenant, state, within.From.At, within.From.Seq}
	if !sameTime(within) {
		args = append(args, within.To.At)
	}
	args = append(args, within.To.Seq, l.Low, l.High)
	if len(l.Tags) > 0 {
		args[0] = l.Tags[0]
		for _, tag := range l.Tags[1:] {
			args = append(args, tag)
		}
	}
	return append(args, limitOrAll(l.Limit))
}

// idsAt returns the ids of the batches at the positions, in the order of these.
func (s *session) idsAt(ctx context.Context, positions []tables.Position) ([]string, error) {
	place := make(map[int64]int, len(positions))
	seqs := make([]int64, len(positions))
	for i, p := range positions {
		place[p.Seq], seqs[i] = i, p.Seq
	}
	list, err := jsonList(seqs)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(positions))
	err = s.rows(ctx, "SELECT seq, id FROM batches WHERE seq IN (SELECT value FROM json_each(?))",
		[]any{list}, func(rows tables.Row) error {
			var seq int64
			var id string
			err := rows.Scan(&seq, &id)
			ids[place[seq]] = id
			return err
		})
	return ids, err
}
