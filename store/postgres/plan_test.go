package postgres_test

import (
	"strings"
	"testing"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store/postgres"
)

// manyBatches fills the tables as so many batches do, which ended except one in a thousand.
const manyBatches = `
	INSERT INTO batches (id, tenant, version, state, created, due, ended, timeline, changed, doc)
	SELECT 'batch_' || n, 't', 3, CASE WHEN n % 1000 = 0 THEN 'in_progress' ELSE 'completed' END,
		n * 1000000, CASE WHEN n % 2 = 0 THEN (n + 86400) * 1000000 ELSE 9223372036854775807 END,
		CASE WHEN n % 1000 = 0 THEN 0 ELSE (n + 60) * 1000000 END, 1, n::text::xid8, '{}'
	FROM generate_series(1, $1::bigint) AS n;`

const theirTags = `
	INSERT INTO batch_tags (seq, tag, state, created, due)
	SELECT seq, tag, state, created, due FROM batches CROSS JOIN LATERAL
		(VALUES (0), (seq % 3 + 1), (seq % 5 + 10)) AS tags (tag);`

const theirChunks = `
	INSERT INTO chunks (batch, idx, model, first, count, done)
	SELECT id, idx, 'm', idx * 10, 10, ended > 0 FROM batches, generate_series(0, 2) AS idx;`

func fill(t testing.TB, s *testpostgres.Server, database string, batches int) {
	t.Helper()
	s.Exec(t, database, manyBatches, batches)
	s.Exec(t, database, theirTags)
	s.Exec(t, database, theirChunks)
	s.Exec(t, database, "VACUUM ANALYZE")
}

func TestQueriesScanIndexes(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	db := open(t, s.URL(database), postgres.Options{})
	fill(t, s, database, 20_000)
	check := func(what, plan string) {
		t.Helper()
		for _, table := range []string{"batches", "batch_tags", "chunks"} {
			if scansAll(plan, table) {
				t.Errorf("%s scans all of %s:\n%s", what, table, plan)
			}
		}
	}
	for _, order := range []string{"created", "due"} {
		for _, ascending := range []bool{true, false} {
			for tags := range 3 {
				check("listing", postgres.ListingPlan(t, db, order, ascending, tags))
			}
		}
	}
	check("changes", postgres.ChangesPlan(t, db))
	check("claim", postgres.ClaimPlan(t, db))
}

// scansAll reports whether a plan in JSON reads a table without an index.
func scansAll(plan, table string) bool {
	for _, node := range strings.Split(plan, `"Node Type": `) {
		if strings.HasPrefix(node, `"Seq Scan"`) && strings.Contains(node,
			`"Relation Name": "`+table+`"`) {
			return true
		}
	}
	return false
}
