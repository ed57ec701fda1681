package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

func TestFilesOfTheFirstSchemaGetReferences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidefill.db")
	exec(t, path, sqlite.FirstSchema+`;
		PRAGMA user_version = 1;
		INSERT INTO files (id, tenant, purpose, created, expires, doc) VALUES
			('in', 't', 'batch', 1, 9223372036854775807, CAST('{"ID":"in","Tenant":"t","BlobKey":"files/in","IndexKey":"files/in.index"}' AS BLOB)),
			('out', 't', 'batch_output', 1, 9223372036854775807, CAST('{"ID":"out","Tenant":"t","BlobKey":"files/out","IndexKey":""}' AS BLOB));
		INSERT INTO batches (id, tenant, version, revision, state, created, due, ended, doc) VALUES
			('none', 't', 1, 1, 'in_progress', 1, 1, 0, CAST('{"ID":"none","Inputs":null}' AS BLOB)),
			('lives', 't', 1, 2, 'in_progress', 1, 1, 0,
				CAST('{"ID":"lives","Inputs":[{"BlobKey":"files/a","IndexKey":"files/a.index"},{"BlobKey":"files/b","IndexKey":""}]}' AS BLOB)),
			('ended', 't', 1, 3, 'completed', 1, 1, 5, CAST('{"ID":"ended","Inputs":[{"BlobKey":"files/c","IndexKey":"files/c.index"}]}' AS BLOB));`)
	db := open(t, path, time.Now)
	keys := []string{"files/in", "files/in.index", "files/out", "files/a", "files/a.index",
		"files/b", "files/c", "files/c.index"}
	dropped, err := db.DropBlobs(t.Context(), "", keys...)
	if want := []string{"files/c", "files/c.index"}; err != nil || !slices.Equal(dropped, want) {
		t.Errorf("dropped %q, %v, want %q", dropped, err, want)
	}
	if f, err := db.DeleteFile(t.Context(), "t", "in"); err != nil ||
		f.IndexKey != "files/in.index" {
		t.Errorf("delete a file of the first schema: %+v, %v", f, err)
	}
	if dropped, err := db.DropBlobs(t.Context(), "", keys[:2]...); err != nil || len(dropped) != 2 {
		t.Errorf("dropped %q, %v, want the deleted file's", dropped, err)
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
				if err := db.CreateBatch(ctx, store.Batch{
					ID: fmt.Sprint(h, "-", i), Tenant: "t", State: store.Validating}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	page, err := open(t, path, time.Now).ListBatchIDs(ctx, "t", store.BatchQuery{})
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
		t.Errorf("create after space was freed: %v", err)
	}
	page, err := db.ListBatchIDs(t.Context(), "t", store.BatchQuery{})
	if err != nil || len(page.Items) != stored {
		t.Errorf("got %d batches, %v, want %d", len(page.Items), err, stored)
	}
}

func TestWritesBehindALockOfAnotherProcessFailInTime(t *testing.T) {
	const wait = 400 * time.Millisecond
	path := filepath.Join(t.TempDir(), "tidefill.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{LockWait: wait})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	raw, err := sql.Open("sqlite", path+"?_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	tx, err := raw.Begin()
	if err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	for i := range 20 {
		writing.Go(func() {
			began := time.Now()
			err := db.CreateBatch(t.Context(), store.Batch{
				ID: fmt.Sprint(i), Tenant: "t", State: store.Validating})
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("got %v, want %v", err, store.ErrUnavailable)
			}
			// One try of busy_timeout may start just before the end.
			if waited := time.Since(began); waited > 4*wait {
				t.Errorf("a write waited %v, want about %v", waited, wait)
			}
		})
	}
	writing.Wait()
	if _, err := db.ListBatchIDs(t.Context(), "t", store.BatchQuery{}); err != nil {
		t.Errorf("read beside a foreign lock: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := db.CreateBatch(t.Context(),
		store.Batch{ID: "b", Tenant: "t", State: store.Validating}); err != nil {
		t.Errorf("write after the lock is free: %v", err)
	}
}

func TestAMissingDatabaseAcceptsNoWrites(t *testing.T) {
	batch := store.Batch{ID: "b", Tenant: "t", State: store.Validating}
	for what, takeAway := range map[string]func(dir string) error{
		"its directory moved": func(dir string) error { return os.Rename(dir, dir+"-away") },
		"another in its place": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+"-away"), os.Mkdir(dir, 0o700),
				os.WriteFile(filepath.Join(dir, "tidefill.db"), nil, 0o600))
		},
		"deleted": func(dir string) error {
			return os.Remove(filepath.Join(dir, "tidefill.db"))
		},
		"its WAL deleted": func(dir string) error {
			return os.Remove(filepath.Join(dir, "tidefill.db-wal"))
		},
		"its folder deleted": func(dir string) error { return os.RemoveAll(dir) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			db := open(t, filepath.Join(dir, "tidefill.db"), time.Now)
			if err := takeAway(dir); err != nil {
				t.Fatal(err)
			}
			if err := db.CreateBatch(t.Context(), batch); !errors.Is(err, store.ErrUnavailable) ||
				!strings.Contains(err.Error(), dir) {
				t.Errorf("write: got %v, want %v with the path", err, store.ErrUnavailable)
			}
			if err := db.Ping(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("ping: got %v, want %v", err, store.ErrUnavailable)
			}
			if _, err := os.Stat(dir + "-away"); err != nil {
				return
			}
			if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+"-away", dir)); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Ping(t.Context()), db.CreateBatch(
				t.Context(), batch)); err != nil {
				t.Errorf("with the file back: %v", err)
			}
		})
	}
}

func TestADamagedDatabaseIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidefill.db")
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		if err := db.CreateFile(t.Context(),
			store.File{ID: fmt.Sprint(i), Tenant: "t", Filename: strings.Repeat(
				"x", 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 300 << 10; i < len(content); i++ {
		content[i] = 0xA5
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err = sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ListFiles(t.Context(), "t", store.FileQuery{}); !errors.Is(err,
		store.ErrUnavailable) {
		t.Errorf("list files of a damaged database: got %v, want %v", err, store.ErrUnavailable)
	}
}

func TestOpensWhileAnotherProcessHoldsTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidefill.db")
	first, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	exec := holdLock(t, path)
	second, err := sqlite.Open(t.Context(), path, sqlite.Options{LockWait: time.Millisecond})
	if err != nil {
		t.Fatalf("open a current file whose lock is taken: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	exec("ROLLBACK")
}

// holdLock takes the lock of the database as a suspended process does, and returns what executes
// statements in the same session.
func holdLock(t *testing.T, path string) (exec func(statement string)) {
	t.Helper()
	pool, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	session, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	exec = func(statement string) {
		t.Helper()
		if _, err := session.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("BEGIN IMMEDIATE")
	return exec
}
