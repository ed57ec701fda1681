package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// changesAfter reads all changes after a cursor, page by page, each id where it came last.
func changesAfter(t testing.TB, m Store, after store.Cursor) (ids []string, next store.Cursor) {
	t.Helper()
	const page = 2
	for {
		found, next, err := m.ChangedBatches(t.Context(), after, page)
		must(t, err)
		for _, id := range found {
			ids = slices.DeleteFunc(ids, func(earlier string) bool { return earlier == id })
			ids = append(ids, id)
		}
		if after = next; len(found) < page {
			return ids, after
		}
	}
}

func touch(t testing.TB, m Store, id string, change func(*store.Batch)) {
	t.Helper()
	got(store.Modify(t.Context(), m, "", id, func(b *store.Batch) error {
		change(b)
		return nil
	}))(t)
}

func pause(b *store.Batch)    { b.Paused = !b.Paused }
func complete(b *store.Batch) { b.State = store.Completed }

func changesAreFollowed(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	for i := range 6 {
		must(t, m.CreateBatch(ctx, newBatch(fmt.Sprintf("b%d", i), fmt.Sprintf("t%d", i%2))))
	}
	touch(t, m, "b1", complete)
	touch(t, m, "b3", complete)

	ids, start, err := m.ChangedBatches(ctx, "", 2)
	must(t, err)
	slices.Sort(ids)
	// all, whatever the limit
	wantEqual(t, "batches that are not terminal", ids, []string{"b0", "b2", "b4", "b5"})
	ids, idle := changesAfter(t, m, start)
	wantEqual(t, "changes while nothing changed", ids, nil)

	touch(t, m, "b4", complete)
	touch(t, m, "b0", pause)
	touch(t, m, "b5", pause)
	touch(t, m, "b0", pause) // moves it behind b5
	must(t, m.CreateBatch(ctx, newBatch("b6", "t0")))
	for _, after := range []store.Cursor{start, idle, start} {
		ids, _ := changesAfter(t, m, after)
		wantEqual(t, "changes", ids, []string{"b4", "b5", "b0", "b6"})
	}

	_, end := changesAfter(t, m, idle)
	got(m.DeleteBatch(ctx, "t1", "b3"))(t)
	must(t, m.CreateBatch(ctx, newBatch("b7", "t1")))
	ids, _ = changesAfter(t, m, end)
	wantEqual(t, "changes after a deletion", ids, []string{"b7"})
}

func changesOfEmptyStore(t *testing.T, m Store, _ *clock) {
	ids, start, err := m.ChangedBatches(t.Context(), "", 10)
	must(t, err)
	wantEqual(t, "changes of an empty store", ids, nil)
	if start == "" {
		t.Error("the cursor of an empty store is that of the start")
	}
	must(t, m.CreateBatch(t.Context(), newBatch("b", "t")))
	touch(t, m, "b", complete)
	ids, _ = changesAfter(t, m, start)
	wantEqual(t, "changes", ids, []string{"b"})
}

func unknownCursorsAreRefused(t *testing.T, m Store, _ *clock) {
	_, _, err := m.ChangedBatches(t.Context(), "no cursor of this store", 10)
	wantErr(t, "changes after an unknown cursor", err, store.ErrBadCursor)
}

// concurrentChangesAreSeen reads the changes while many writers commit, and checks that it misses
// none.
func concurrentChangesAreSeen(t *testing.T, m Store, _ *clock) {
	const writers, each = 4, 40
	ctx := t.Context()
	_, after, err := m.ChangedBatches(ctx, "", 1)
	must(t, err)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range each {
				if err := m.CreateBatch(ctx, newBatch(fmt.Sprintf("b-%d-%d", w, i),
					"t")); err != nil {
					t.Errorf("create a batch: %v", err)
				}
			}
		})
	}
	seen := map[string]bool{}
	deadline := time.Now().Add(waitLimit)
	for len(seen) < writers*each && time.Now().Before(deadline) && !t.Failed() {
		var ids []string
		ids, after = changesAfter(t, m, after)
		for _, id := range ids {
			seen[id] = true
		}
	}
	running.Wait()
	if len(seen) != writers*each {
		t.Errorf("saw %d new batches, want %d", len(seen), writers*each)
	}
}
