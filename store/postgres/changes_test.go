package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

func batch(id string) store.Batch {
	return store.Batch{ID: id, Tenant: "t", State: store.InProgress, Endpoint: "/v1/embeddings",
		Window: "24h", CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Models: []store.ModelLines{{Model: "m", Lines: 10}}}
}

// TestChangesOfSlowTransactions lets a transaction begin before another one and commit after it,
// with a reader in between. A cursor of a sequence would pass the slow one, as its number is lower:
// the test checks that it is.
func TestChangesOfSlowTransactions(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	db := open(t, s.URL(database), postgres.Options{})
	ctx := t.Context()
	_, cursor, err := db.ChangedBatches(ctx, "", 10)
	must(t, err)

	// Another transaction has inserted the id, so that the slow one waits for its end after it got
	// its number.
	conn, err := pgx.Connect(ctx, s.URL(database))
	must(t, err)
	defer conn.Close(ctx)
	blocker, err := conn.Begin(ctx)
	must(t, err)
	_, err = blocker.Exec(ctx, `INSERT INTO batches (id, tenant, version, state, created, due, ended,
		timeline, changed, doc) VALUES ('slow', 't', 1, '', 0, 0, 0, 0, '1', '')`)
	must(t, err)
	slow := make(chan error, 1)
	go func() { slow <- db.CreateBatch(ctx, batch("slow")) }()
	awaitLock(t, s, database)

	must(t, db.CreateBatch(ctx, batch("quick")))
	ids, cursor, err := db.ChangedBatches(ctx, cursor, 1)
	must(t, err)
	if !slices.Equal(ids, []string{"quick"}) {
		t.Fatalf("got changes %v, want quick", ids)
	}
	ids, cursor, err = db.ChangedBatches(ctx, cursor, 10)
	must(t, err)
	if len(ids) != 0 {
		t.Errorf("got changes %v again", ids)
	}
	must(t, blocker.Rollback(ctx))
	must(t, <-slow)
	ids, _, err = db.ChangedBatches(ctx, cursor, 10)
	must(t, err)
	if !slices.Equal(ids, []string{"slow"}) {
		t.Errorf("got changes %v after the slow transaction, want slow", ids)
	}
	var behind bool
	must(t, conn.QueryRow(ctx, `SELECT (SELECT seq FROM batches WHERE id = 'slow')
		< (SELECT seq FROM batches WHERE id = 'quick')`).Scan(&behind))
	if !behind {
		t.Error("the slow batch has the higher number, so the test shows nothing")
	}
}

// awaitLock waits until a statement of the database waits for a lock.
func awaitLock(t testing.TB, s *testpostgres.Server, database string) {
	t.Helper()
	awaitLocks(t, s, database, 1)
}

// awaitLocks waits until so many statements of the database wait for a lock.
func awaitLocks(t testing.TB, s *testpostgres.Server, database string, statements int) {
	t.Helper()
	ctx := t.Context()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	must(t, err)
	defer conn.Close(ctx)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var waiting int
		must(t, conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = $1 AND wait_event_type = 'Lock'`, database).Scan(&waiting))
		if waiting >= statements {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d statements wait for a lock, want %d", waiting, statements)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
