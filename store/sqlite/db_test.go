package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/sqlite"
)

func exec(t testing.TB, path, statement string) {
	t.Helper()
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesANewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidefill.db")
	open(t, path, time.Now)
	exec(t, path, "PRAGMA user_version = 99")
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err == nil || !strings.Contains(err.Error(), "version 99 is newer") {
		t.Errorf("got %v, want a word about version 99", err)
	}
}

func TestProcessesOpenOneFileTogether(t *testing.T) {
	const handles, batches = 4, 10
	path := filepath.Join(t.TempDir(), "new", "odd ?#%&name.db")
	ctx := t.Context()
	var running sync.WaitGroup
	for h := range handles {
		running.Go(func() {
			db, err := sqlite.Open(ctx, path, sqlite.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer db.Close()
			for i := range batches {
				if err := db.CreateBatch(ctx, store.Batch{ID: fmt.Sprint(h, "-", i), Tenant: "t", State: store.Validating}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	page, err := open(t, path, time.Now).ListBatches(ctx, "t", store.BatchQuery{})
	if err != nil || len(page.Items) != handles*batches {
		t.Errorf("got %d batches, %v, want %d", len(page.Items), err, handles*batches)
	}
}

func TestWritersWaitForOthersNoLongerThanTheirContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidefill.db")
	db := open(t, path, time.Now)
	raw, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	tx, err := raw.Begin()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	batch := store.Batch{ID: "b", Tenant: "t", State: store.Validating}
	if err := db.CreateBatch(ctx, batch); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateBatch(t.Context(), batch); err != nil {
		t.Error(err)
	}
}

func TestFullDisk(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "tidefill.db"), time.Now)
	sqlite.LimitPages(t, db, 60)
	large := store.Batch{Tenant: "t", State: store.Validating, Reason: strings.Repeat("x", 20_000)}
	var err error
	stored := 0
	for ; err == nil && stored < 100; stored++ {
		large.ID = fmt.Sprint(stored)
		err = db.CreateBatch(t.Context(), large)
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("got %v, want %v", err, store.ErrNoSpace)
	}
	sqlite.LimitPages(t, db, 1<<20)
	if err := db.CreateBatch(t.Context(), large); err != nil {
		t.Errorf("create after room was made: %v", err)
	}
	page, err := db.ListBatches(t.Context(), "t", store.BatchQuery{})
	if err != nil || len(page.Items) != stored {
		t.Errorf("got %d batches, %v, want %d", len(page.Items), err, stored)
	}
}
