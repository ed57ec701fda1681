package live_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidefill/tidefill/store/live"
	"github.com/tidefill/tidefill/store/live/livetest"
	"github.com/tidefill/tidefill/store/sqlite"
	"github.com/tidefill/tidefill/store/storetest"
)

func TestMemory(t *testing.T) {
	var m live.Memory
	t.Run("Snapshots", func(t *testing.T) { livetest.TestSnapshots(t, &m, &m) })
	t.Run("Windows", func(t *testing.T) { livetest.TestWindows(t, &m, &m) })
}

func TestMemoryEvents(t *testing.T) {
	var m live.Memory
	var got []string
	stop := m.Subscribe(func(topic live.Topic, ids []string) {
		got = append(got, string(topic)+" "+ids[0])
	})
	m.Emit(live.Batches, "b1")
	stop()
	m.Emit(live.Batches, "b2")
	if len(got) != 1 || got[0] != "batches b1" {
		t.Errorf("got %q, want the one before stop", got)
	}
}

func TestOldSnapshotsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m live.Memory
		publish := func(epoch int64) error {
			return m.Publish(t.Context(), "pools", live.Snapshot{Name: "x", Epoch: epoch})
		}
		if err := publish(2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(live.KeepSnapshots)
		if all, err := m.Snapshots(t.Context(), "pools"); err != nil || len(all) != 0 {
			t.Errorf("after %v: %v %v, want none", live.KeepSnapshots, all, err)
		}
		if err := publish(1); err != nil {
			t.Errorf("publish at an epoch below that of one that was dropped: %v", err)
		}
	})
}

func TestBoard(t *testing.T) {
	storetest.TestProgress(t, func(t *testing.T, now func() time.Time) storetest.Store {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "tidefill.db"),
			sqlite.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		s := storetest.StoreOf(db)
		s.ProgressBoard = live.NewBoard()
		return s
	})
}
