package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store/sqlite"
	"github.com/tidefill/tidefill/store/storetest"
)

func TestMetadata(t *testing.T) {
	storetest.TestMetadata(t, func(t *testing.T, now func() time.Time) storetest.Store {
		return storetest.StoreOf(open(t, filepath.Join(t.TempDir(), "tidefill.db"), now))
	})
}

func open(t testing.TB, path string, now func() time.Time) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}
