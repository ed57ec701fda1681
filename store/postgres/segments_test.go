package postgres_test

import (
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/segments/registrytest"
	"github.com/tidefill/tidefill/store/storetest"
)

func TestSegments(t *testing.T) {
	s := testpostgres.Shared(t)
	registrytest.Test(t, func(t *testing.T) (here, there segments.Registry,
		advance func(time.Duration)) {
		address := s.URL(s.NewDatabase(t))
		return open(t, address, postgres.Options{}).Segments(),
			open(t, address, postgres.Options{}).Segments(), time.Sleep
	})
}

// TestJournals runs the suite of journals with their register in PostgreSQL and their objects in a
// directory. They commit, compact and sweep all the time.
func TestJournals(t *testing.T) {
	s := testpostgres.Shared(t)
	storetest.TestJournals(t, func(t *testing.T) (here, there store.Journals) {
		files, err := disk.Open(t.TempDir(), disk.Options{})
		must(t, err)
		t.Cleanup(func() { must(t, files.Close()) })
		objects := segments.ObjectsIn(files.Blobs(), "segments")
		address := s.URL(s.NewDatabase(t))
		return openJournals(t, objects, open(t, address, postgres.Options{})),
			openJournals(t, objects, open(t, address, postgres.Options{}))
	})
}

func openJournals(
	t *testing.T, objects segments.Objects, db *postgres.DB,
) store.Journals {
	t.Helper()
	js, err := segments.Open(t.Context(), objects, db.Segments(), segments.Options{
		CommitAfter: 20 * time.Millisecond, CommitFewAfter: 40 * time.Millisecond,
		CommitGap: 5 * time.Millisecond, RetryAfter: 50 * time.Millisecond, CompactCount: 3,
		SweepAge: 3 * time.Second, DeleteAfter: time.Nanosecond,
		DeleteEvery: 7 * time.Millisecond, SweepEvery: 11 * time.Millisecond,
	})
	must(t, err)
	t.Cleanup(func() {
		if err := js.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return js
}
