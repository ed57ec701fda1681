package segments_test

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/segments/registrytest"
	"github.com/tidefill/tidefill/store/storetest"
)

// fast has the journals commit, compact and sweep all the time.
var fast = segments.Options{
	CommitAfter: 20 * time.Millisecond, CommitFewAfter: 40 * time.Millisecond,
	CommitGap: 5 * time.Millisecond, RetryAfter: 50 * time.Millisecond, CompactCount: 3,
	SweepAge: 3 * time.Second, DeleteAfter: time.Nanosecond,
	DeleteEvery: 7 * time.Millisecond, SweepEvery: 11 * time.Millisecond,
}

func TestJournals(t *testing.T) {
	for name, opts := range map[string]segments.Options{
		"default": {CommitGap: 20 * time.Millisecond}, "fast": fast,
	} {
		t.Run(name, func(t *testing.T) {
			storetest.TestJournals(t, func(t *testing.T) (here, there store.Journals) {
				objects, registry := directory(t), registrytest.NewMemory(time.Now)
				return open(t, objects, registry, opts), open(t, objects, registry, opts)
			})
		})
	}
}

func directory(t testing.TB) segments.Objects {
	t.Helper()
	s, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return segments.ObjectsIn(s.Blobs(), "segments")
}

func open(
	t testing.TB, objects segments.Objects, registry segments.Registry, opts segments.Options,
) *segments.Journals {
	t.Helper()
	js, err := segments.Open(t.Context(), objects, registry, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := js.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return js
}
