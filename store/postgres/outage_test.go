package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

// writers create batches and count them up in each of some processes, until stop.
type writers struct {
	acknowledged sync.Map // id of a batch: true
	counted      atomic.Int64
	unavailable  atomic.Int64
	running      sync.WaitGroup
	stop         chan struct{}
}

// startWriters starts two writers for each database. They share one batch, "sum", whose Completed
// they count up by compare-and-set.
func startWriters(t *testing.T, dbs ...*postgres.DB) *writers {
	t.Helper()
	must(t, dbs[0].CreateBatch(t.Context(), batch("sum")))
	w := &writers{stop: make(chan struct{})}
	for i := range 2 * len(dbs) {
		w.running.Go(func() { w.write(t, dbs[i/2], i) })
	}
	return w
}

func (w *writers) write(t *testing.T, db *postgres.DB, writer int) {
	ctx := t.Context()
	for n := 0; ; n++ {
		select {
		case <-w.stop:
			return
		default:
		}
		id := fmt.Sprintf("b-%d-%d", writer, n)
		err := db.CreateBatch(ctx, batch(id))
		if w.expected(t, err, store.ErrUnavailable) {
			w.acknowledged.Store(id, true)
		}
		b, err := db.Batch(ctx, "t", "sum")
		if !w.expected(t, err, store.ErrUnavailable) {
			continue
		}
		b.Counts.Completed++
		if _, err = db.UpdateBatch(ctx, b); w.expected(t, err, store.ErrUnavailable,
			store.ErrConflict) {
			w.counted.Add(1)
		}
	}
}

// expected reports whether a call succeeded, and fails the test if its error is not among those
// that it may have.
func (w *writers) expected(t *testing.T, err error, may ...error) bool {
	if err == nil {
		return true
	}
	for _, one := range may {
		if errors.Is(err, one) {
			if errors.Is(err, store.ErrUnavailable) {
				w.unavailable.Add(1)
				time.Sleep(2 * time.Millisecond)
			}
			return false
		}
	}
	t.Errorf("got error %v, want one of %v", err, may)
	return false
}

// await waits until the writers have written so many more batches.
func (w *writers) await(t *testing.T, more int64) {
	t.Helper()
	for from, deadline := w.counted.Load(), time.Now().Add(time.Minute); w.counted.Load() <
		from+more; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the writers do not go on")
		}
	}
}

// end stops the writers and checks that what was acknowledged is there.
func (w *writers) end(t *testing.T, db *postgres.DB) {
	t.Helper()
	close(w.stop)
	w.running.Wait()
	written := 0
	w.acknowledged.Range(func(id, _ any) bool {
		written++
		if _, err := db.Batch(t.Context(), "t", id.(string)); err != nil {
			t.Errorf("a batch whose creation was acknowledged: %v", err)
		}
		return true
	})
	sum, err := db.Batch(t.Context(), "t", "sum")
	must(t, err)
	unknown := int64(sum.Counts.Completed) - w.counted.Load()
	if unknown < 0 || unknown > w.unavailable.Load() || sum.Version != int64(
		sum.Counts.Completed)+1 {
		t.Errorf("counted up to %d at version %d; %d were acknowledged and %d got no answer",
			sum.Counts.Completed, sum.Version, w.counted.Load(), w.unavailable.Load())
	}
	t.Logf("%d batches and %d counts were acknowledged, %d calls got no answer", written,
		w.counted.Load(), w.unavailable.Load())
}

// follow reads the changes until all of the batches were seen.
func follow(
	t *testing.T, db *postgres.DB, after store.Cursor, w *writers,
) {
	t.Helper()
	seen := map[string]bool{}
	for {
		ids, next, err := db.ChangedBatches(t.Context(), after, 7)
		must(t, err)
		for _, id := range ids {
			seen[id] = true
		}
		if after = next; len(ids) < 7 {
			break
		}
	}
	w.acknowledged.Range(func(id, _ any) bool {
		if !seen[id.(string)] {
			t.Errorf("the change of batch %v was missed", id)
		}
		return true
	})
}

func TestCutConnections(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	address := s.URL(database)
	here, there := open(t, address, postgres.Options{}), open(t, address, postgres.Options{})
	_, start, err := here.ChangedBatches(t.Context(), "", 1)
	must(t, err)
	w := startWriters(t, here, there)
	for range 20 {
		w.await(t, 10)
		s.Cut(t, database)
	}
	w.await(t, 10)
	w.end(t, here)
	follow(t, there, start, w)
}

func TestRestartedServer(t *testing.T) {
	s := testpostgres.Start(t)
	database := s.NewDatabase(t)
	address := s.URL(database)
	here, there := open(t, address, postgres.Options{}), open(t, address, postgres.Options{})
	_, start, err := here.ChangedBatches(t.Context(), "", 1)
	must(t, err)
	w := startWriters(t, here, there)
	for range 2 {
		w.await(t, 20)
		s.Kill(t)
		if err := here.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("ping a server that is away: got %v, want %v", err, store.ErrUnavailable)
		}
		s.Restart(t)
	}
	w.await(t, 20)
	w.end(t, here)
	follow(t, there, start, w)
}

// TestFailover promotes a standby that has every acknowledged transaction. Nothing is lost, and
// readers of changes go on.
func TestFailover(t *testing.T) {
	first := testpostgres.Start(t)
	database := first.NewDatabase(t)
	second := first.Standby(t)
	first.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'")
	first.Exec(t, "postgres", "SELECT pg_reload_conf()")
	// The address names both; the one that accepts writes is used.
	both := strings.Replace(first.URL(database), "/"+database,
		fmt.Sprintf(",127.0.0.1:%d/%s", second.Port, database), 1)
	here, there := open(t, both, postgres.Options{}), open(t, both, postgres.Options{})
	cluster := here.ClusterID()
	o, err := here.Register(t.Context(), "n", time.Hour)
	must(t, err)
	epoch, ok, err := here.Lock(t.Context(), o, "l")
	if err != nil || !ok {
		t.Fatalf("lock: %v, %v", ok, err)
	}
	_, start, err := here.ChangedBatches(t.Context(), "", 1)
	must(t, err)
	w := startWriters(t, here, there)
	w.await(t, 30)
	first.Kill(t)
	second.Promote(t)
	w.await(t, 30)
	w.end(t, here)
	follow(t, there, start, w)
	again, ok, err := there.Lock(t.Context(), o, "l")
	if err != nil || !ok || again != epoch {
		t.Errorf("lock after the failover: got %d, %v, %v, want the epoch %d", again, ok, err,
			epoch)
	}
	if reopened := open(t, both, postgres.Options{}); reopened.ClusterID() != cluster {
		t.Errorf("the cluster id is %s, want %s", reopened.ClusterID(), cluster)
	}
}

// A server that stands still gets no more patience than the limit of calls.
func TestSuspendedServer(t *testing.T) {
	s := testpostgres.Start(t)
	c := config(t, s.URL(s.NewDatabase(t)))
	c.Timeout = 300 * time.Millisecond
	db, err := postgres.Open(t.Context(), c, postgres.Options{})
	must(t, err)
	defer db.Close()
	must(t, db.CreateBatch(t.Context(), batch("before")))
	resume := s.Suspend(t)
	defer resume()
	began := time.Now()
	if err := db.CreateBatch(t.Context(), batch("during")); !errors.Is(err,
		store.ErrUnavailable) {
		t.Errorf("create: got %v, want %v", err, store.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := db.Batch(ctx, "t", "before"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("load within a context: got %v, want %v", err, context.DeadlineExceeded)
	}
	if waited := time.Since(began); waited > 20*time.Second {
		t.Errorf("the calls waited %v", waited)
	}
	resume()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := db.Batch(t.Context(), "t", "before")
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(deadline) {
			t.Fatalf("load after the server went on: %v", err)
		}
	}
}
