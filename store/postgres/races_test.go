package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

// blockID makes calls that insert a file with the id, or change the batch with the id, wait until
// release.
func blockID(
	t *testing.T, s *testpostgres.Server, database, statement string,
) (release func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, s.URL(database))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(ctx) })
	tx, err := conn.Begin(ctx)
	must(t, err)
	_, err = tx.Exec(ctx, statement)
	must(t, err)
	return func() {
		t.Helper()
		must(t, tx.Rollback(ctx))
	}
}

// A file that is being created keeps its bytes: whoever drops them waits, and then sees the file.
func TestDropsWaitForFiles(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	db := open(t, s.URL(database), postgres.Options{})
	ctx := t.Context()
	release := blockID(t, s, database, `INSERT INTO files
		(id, tenant, purpose, created, expires, bytes, doc) VALUES ('f', '', '', 0, 0, 0, '')`)
	created, dropped := make(chan error, 1), make(chan []string, 1)
	go func() {
		created <- db.CreateFile(ctx, store.File{ID: "f", Tenant: "t", BlobKey: "x"})
	}()
	awaitLocks(t, s, database, 1)
	go func() {
		keys, err := db.DropBlobs(ctx, "", "x")
		if err != nil {
			t.Errorf("drop: %v", err)
		}
		dropped <- keys
	}()
	awaitLocks(t, s, database, 2)
	release()
	must(t, <-created)
	if keys := <-dropped; len(keys) > 0 {
		t.Errorf("dropped the bytes %v of a file", keys)
	}
}

// A lock does not get another holder while the end of a batch depends on it.
func TestLocksWaitForTheEndOfBatches(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	clock := &movingClock{}
	clock.micros.Store(1 << 50)
	db := open(t, s.URL(database), postgres.Options{Now: clock.Now})
	ctx := t.Context()
	must(t, db.CreateBatch(ctx, batch("b")))
	slow, err := db.Register(ctx, "slow", time.Second)
	must(t, err)
	epoch, _, err := db.Lock(ctx, slow, "l")
	must(t, err)
	clock.micros.Add(time.Minute.Microseconds())
	quick, err := db.Register(ctx, "quick", time.Hour)
	must(t, err)

	release := blockID(t, s, database, "SELECT 1 FROM batches WHERE id = 'b' FOR UPDATE")
	finished := make(chan error, 1)
	go func() {
		b := batch("b")
		b.Version, b.State = 1, store.Completed
		_, err := db.FinishBatch(ctx, slow, "l", epoch, b, nil)
		finished <- err
	}()
	awaitLocks(t, s, database, 1)
	locked := make(chan error, 1)
	go func() {
		_, ok, err := db.Lock(ctx, quick, "l")
		if err == nil && !ok {
			err = errors.New("another owner holds it")
		}
		locked <- err
	}()
	awaitLocks(t, s, database, 2)
	release()
	must(t, <-finished)
	must(t, <-locked)
	b, err := db.Batch(ctx, "t", "b")
	if err != nil || b.State != store.Completed {
		t.Errorf("the batch is %s, %v", b.State, err)
	}
}
