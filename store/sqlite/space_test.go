package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/sqlite"
)

// medium is a disk with a reserve.
type medium struct {
	t       *testing.T
	db      *sqlite.DB
	full    bool
	reserve int // pages that FreeReserve adds once
}

func (m *medium) CheckSpace() error {
	if m.full {
		return fmt.Errorf("%w: none", store.ErrNoSpace)
	}
	return nil
}

func (m *medium) FreeReserve() bool {
	if m.reserve == 0 {
		return false
	}
	sqlite.LimitPages(m.t, m.db, m.reserve)
	m.reserve = 0
	return true
}

func TestAFullDatabaseCanBeEmptied(t *testing.T) {
	m := &medium{t: t}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "tidefill.db"),
		sqlite.Options{Space: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	m.db = db
	ctx := t.Context()
	owner, err := db.Register(ctx, "n", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	sqlite.LimitPages(t, db, 120)
	large := store.Batch{Tenant: "t", State: store.InProgress, Reason: strings.Repeat("x", 10_000)}
	for i := 0; err == nil; i++ {
		large.ID = fmt.Sprint(i)
		err = db.CreateBatch(ctx, large)
	}
	if !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("got %v, want %v", err, store.ErrNoSpace)
	}

	m.full, m.reserve = true, 200
	// Writes that let the database grow are refused and do not use the reserve.
	for what, err := range map[string]error{
		"create a batch": db.CreateBatch(ctx,
			store.Batch{ID: "b", Tenant: "t", State: store.Validating}),
		"create a file":    db.CreateFile(ctx, store.File{ID: "f", Tenant: "t"}),
		"create an upload": db.CreateUpload(ctx, store.Upload{ID: "u", Tenant: "t"}),
		"add a part":       db.AddPart(ctx, store.Part{ID: "p", UploadID: "u"}),
		"add chunks":       db.AddChunks(ctx, "0", []store.Chunk{{Model: "m", Count: 1}}),
		"claim chunks": func() error {
			_, err := db.ClaimChunks(ctx, owner, "0", "m", 1, nil)
			return err
		}(),
		"remember": func() error {
			_, _, err := db.Remember(ctx, "t", "k", "v", time.Hour)
			return err
		}(),
		"post progress": db.PostProgress(ctx, owner, map[string]store.ProgressPost{
			"0": {Progress: store.Progress{Waiting: strings.Repeat("y", 10_000)}},
			"1": {Progress: store.Progress{Waiting: strings.Repeat("y", 10_000)}}}),
	} {
		if !errors.Is(err, store.ErrNoSpace) || m.reserve == 0 {
			t.Errorf("%s on a full disk: got %v, want %v; the reserve has %d pages", what, err,
				store.ErrNoSpace, m.reserve)
		}
	}
	// Writes that free space succeed.
	_, err = store.Modify(ctx, db, "t", "1", func(b *store.Batch) error {
		b.Paused, b.Reason = true, strings.Repeat("x", 30_000)
		return nil
	})
	if err != nil || m.reserve != 0 {
		t.Errorf("pause a batch on a full disk: %v; the reserve has %d pages", err, m.reserve)
	}
	for _, state := range []store.State{store.Cancelling, store.Cancelled} {
		if _, err := store.Modify(ctx, db, "t", "0", func(b *store.Batch) error {
			b.State = state
			return nil
		}); err != nil {
			t.Errorf("change a batch to %s on a full disk: %v", state, err)
		}
	}
	if _, err := db.DeleteBatch(ctx, "t", "0"); err != nil {
		t.Errorf("delete a batch on a full disk: %v", err)
	}
}
