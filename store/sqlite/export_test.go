package sqlite

import (
	"fmt"
	"iter"
	"testing"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// FirstSchema is the schema of version 1.
var FirstSchema = schema1

// LimitPages makes the file look as if the disk had space for so many pages.
func LimitPages(t testing.TB, db *DB, pages int) {
	t.Helper()
	s, err := db.writer.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.writer.release(s)
	if err := s.script(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
}

// Plans returns the steps of SQLite's query plan.
func Plans(t testing.TB, db *DB, query string, args ...any) (plan []string) {
	t.Helper()
	rows, err := db.pool.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c int
		var step string
		if err := rows.Scan(&a, &b, &c, &step); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan
}

// ListingQuery returns the statement of one scan of a listing.
func ListingQuery(sort, other string, ascending, sameTime bool, tags int) (string, []any) {
	l := listing{tables.Listing{Sort: sort, Other: other, Ascending: ascending,
		Tags: make([]int64, tags)}}
	var within tables.Span
	if !sameTime {
		within.To.At = tables.Never
	}
	return l.query(within), l.args("completed", within)
}

// CreateAll is CreateBatch for many, in one transaction.
func CreateAll(t testing.TB, db *DB, batches iter.Seq[store.Batch]) {
	t.Helper()
	ctx := t.Context()
	err := db.write(ctx, func(s *session) error {
		for b := range batches {
			row, err := tables.EncodeBatch(b, db.now())
			if err != nil {
				return err
			}
			if err := s.createBatch(ctx, row, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
