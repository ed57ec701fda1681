package disk_test

import (
	"testing"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/storetest"
)

func TestBlobs(t *testing.T) {
	storetest.TestBlobs(t, func(t *testing.T) store.Blobs { return open(t, t.TempDir()).Blobs() })
}

func TestJournals(t *testing.T) {
	storetest.TestJournals(t, func(t *testing.T) (here, there store.Journals) {
		dir := t.TempDir()
		return open(t, dir).Journals(), open(t, dir).Journals()
	})
}

func open(t testing.TB, dir string) *disk.Store {
	t.Helper()
	s, err := disk.Open(dir, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
