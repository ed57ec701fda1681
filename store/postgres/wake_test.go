package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store/postgres"
)

// watcher listens for changes until the test ends.
type watcher struct {
	woken chan struct{}
	ended chan error
}

func watch(t *testing.T, db *postgres.DB) *watcher {
	t.Helper()
	w := &watcher{make(chan struct{}, 1000), make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ended <- db.WakeOnChange(ctx, func() { w.woken <- struct{}{} })
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// await waits for the next call of wake and returns how long that took.
func (w *watcher) await(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-w.woken:
	case err := <-w.ended:
		t.Fatalf("listening ended: %v", err)
	case <-time.After(10 * time.Second):
		t.Fatal("a change was not noticed within 10 s")
	}
	return time.Since(began)
}

func TestChangesWakeOtherProcesses(t *testing.T) {
	s := testpostgres.Shared(t)
	address := s.URL(s.NewDatabase(t))
	watching, changing := open(t, address, postgres.Options{}), open(t, address, postgres.Options{})
	w := watch(t, watching)
	w.await(t) // it listens
	o, err := changing.Register(t.Context(), "n", time.Minute)
	must(t, err)
	_, _, err = changing.Lead(t.Context(), o, []string{"model/m"})
	must(t, err)
	b := batch("b")
	ctx := t.Context()
	for name, change := range map[string]func() error{
		"a new batch": func() error { return changing.CreateBatch(ctx, batch("other")) },
		"a leadership that ended": func() error {
			return changing.Resign(ctx, o, []string{"model/m"})
		},
		"an owner that ended": func() error { return changing.Unregister(ctx, o) },
		"a change": func() error {
			must(t, changing.CreateBatch(ctx, b))
			w.await(t)
			b, err := changing.Batch(ctx, b.Tenant, b.ID)
			must(t, err)
			b.Paused = true
			_, err = changing.UpdateBatch(ctx, b)
			return err
		},
	} {
		must(t, change())
		took := w.await(t)
		t.Logf("%s was noticed after %v", name, took)
		if took > time.Second {
			t.Errorf("%s was noticed after %v", name, took)
		}
	}
	must(t, watching.CreateBatch(t.Context(), batch("own")))
	select {
	case <-w.woken:
		t.Error("a change by the process itself woke it")
	case <-time.After(200 * time.Millisecond):
	}
}

// A hundred changes at once do not become a hundred notifications.
func TestNotificationsAreShared(t *testing.T) {
	s := testpostgres.Shared(t)
	address := s.URL(s.NewDatabase(t))
	w := watch(t, open(t, address, postgres.Options{}))
	w.await(t)
	changing := open(t, address, postgres.Options{})
	o, err := changing.Register(t.Context(), "n", time.Minute)
	must(t, err)
	began := time.Now()
	for range 100 {
		must(t, changing.Resign(t.Context(), o, []string{"model/m"}))
	}
	took := time.Since(began)
	time.Sleep(200 * time.Millisecond)
	if most := 3 + int(took/(20*time.Millisecond)); len(w.woken) > most {
		t.Errorf("%d notifications of 100 changes within %v, want at most %d", len(w.woken), took,
			most)
	}
}

// Through PgBouncer nothing can be heard, unless there is an address of the server itself.
func TestListeningGoesAroundPgBouncer(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	pooled := testpostgres.StartBouncer(t, s).URL(database)
	changing := open(t, pooled, postgres.Options{})
	err := changing.WakeOnChange(t.Context(), func() { t.Error("it was woken") })
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("through PgBouncer: got %v, want %v", err, errors.ErrUnsupported)
	}
	with := func(direct string) *postgres.DB {
		c := config(t, pooled)
		c.DirectURL = config(t, direct).URL
		db, err := postgres.Open(t.Context(), c, postgres.Options{})
		must(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
	w := watch(t, with(s.URL(database)))
	w.await(t)
	must(t, changing.CreateBatch(t.Context(), batch("b")))
	w.await(t)

	other := s.NewDatabase(t)
	open(t, s.URL(other), postgres.Options{})
	err = with(s.URL(other)).WakeOnChange(t.Context(), func() { t.Error("it was woken") })
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("with the database of another installation: got %v, want %v", err,
			errors.ErrUnsupported)
	}
}

// A connection that is cut ends the listening, and the next begins with a wake, since changes were
// missed.
func TestListeningEndsWithItsConnection(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	db := open(t, s.URL(database), postgres.Options{})
	w := watch(t, db)
	w.await(t)
	s.Cut(t, database)
	select {
	case err := <-w.ended:
		if err == nil {
			t.Error("listening ended without an error")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("listening did not end with its connection")
	}
	watch(t, db).await(t)
}
