package sqlite

import (
	"fmt"
	"iter"
	"testing"

	"github.com/tidefill/tidefill/store"
)

// FirstSchema is the schema of version 1.
var FirstSchema = schema1

// LimitPages makes the file look as if the disk had room for so many pages.
func LimitPages(t testing.TB, db *DB, pages int) {
	t.Helper()
	s, err := db.writer.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer db.writer.give(s)
	if err := s.script(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
		t.Fatal(err)
	}
}

// Plans returns what SQLite says about how it runs the listing of a query, by step.
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
	return plan
}

// ListingQuery is the statement that walks through a listing.
func ListingQuery(sort, other string, ascending, tied bool, tags int) (string, []any) {
	l := listing{sort: sort, other: other, ascending: ascending, tags: make([]int64, tags)}
	var within stretch
	if !tied {
		within.to.at = never
	}
	return l.query(within), l.args("completed", within)
}

// CreateAll is CreateBatch for many, in one transaction.
func CreateAll(t testing.TB, db *DB, batches iter.Seq[store.Batch]) {
	t.Helper()
	ctx := t.Context()
	err := db.write(ctx, func(s *session) error {
		for b := range batches {
			b.Version = 1
			row, doc, err := db.encodeBatch(&b)
			if err != nil {
				return err
			}
			if err := s.createBatch(ctx, b, row, doc, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
