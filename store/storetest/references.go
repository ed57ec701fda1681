package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// newInput stores a file with an index and returns it, and a batch that reads it.
func newInput(t *testing.T, m Store, id string) (store.File, store.Batch) {
	t.Helper()
	f := newFile(id, "t")
	f.IndexKey = f.BlobKey + ".index"
	must(t, m.CreateFile(t.Context(), f))
	return f, batchOf(f, "batch-of-"+id)
}

// batchOf returns a batch whose only input is the file.
func batchOf(f store.File, id string) store.Batch {
	b := newBatch(id, f.Tenant)
	b.Inputs = []store.Input{{FileID: f.ID, BlobKey: f.BlobKey, IndexKey: f.IndexKey, Lines: 1}}
	return b
}

func wantDropped(
	t *testing.T, m Store, what, expired string, keys []string, want ...string,
) {
	t.Helper()
	dropped := got(m.DropBlobs(t.Context(), expired, keys...))(t)
	slices.Sort(dropped)
	if !slices.Equal(dropped, want) {
		t.Errorf("drop blobs %s: got %q, want %q", what, dropped, want)
	}
}

func referencesKeepBlobs(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	f, first := newInput(t, m, "in")
	second := batchOf(f, "second")
	second.Inputs = append(second.Inputs, second.Inputs[0]) // twice
	keys := []string{f.BlobKey, f.IndexKey, ""}
	wantDropped(t, m, "of a file", "", keys)
	must(t, m.CreateBatch(ctx, first))
	must(t, m.CreateBatch(ctx, second))
	got(m.DeleteFile(ctx, "t", "in"))(t)
	wantDropped(t, m, "of two batches", "", keys)
	wantDropped(t, m, "of two batches, for the file", "in", keys)

	first.Version, first.State = 1, store.Failed
	got(m.UpdateBatch(ctx, first))(t)
	wantDropped(t, m, "of one batch", "", keys)
	second.Version, second.State = 1, store.InProgress
	second = got(m.UpdateBatch(ctx, second))(t)
	wantDropped(t, m, "of a batch that was changed", "", keys)
	second.State = store.Completed
	got(m.UpdateBatch(ctx, second))(t)
	wantDropped(t, m, "of none", "", keys, f.BlobKey, f.IndexKey)
	wantDropped(t, m, "of none, again", "", keys, f.BlobKey, f.IndexKey)
	wantDropped(t, m, "unknown", "", []string{"files/unknown"}, "files/unknown")

	// An expired file refers to its bytes until the sweeper names it as about to be purged.
	old := newFile("old", "t")
	old.ExpiresAt = c.Now().Add(time.Minute)
	must(t, m.CreateFile(ctx, old))
	c.advance(time.Hour)
	wantDropped(t, m, "of an expired file", "", []string{old.BlobKey})
	wantDropped(t, m, "of an expired file, for another", "in", []string{old.BlobKey})
	wantDropped(t, m, "of an expired file, for it", "old", []string{old.BlobKey}, old.BlobKey)
	must(t, m.PurgeFile(ctx, "old"))
	wantDropped(t, m, "of a purged file", "", []string{old.BlobKey}, old.BlobKey)
}

func referencesToDroppedBlobs(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	f, b := newInput(t, m, "in")

	stranger := batchOf(f, "stranger")
	stranger.Tenant = "other"
	wantErr(t, "create a batch of another tenant's file", m.CreateBatch(ctx, stranger),
		store.ErrNotFound)
	swapped := batchOf(f, "swapped")
	swapped.Inputs[0].BlobKey = "files/another"
	wantErr(t, "create a batch of other bytes", m.CreateBatch(ctx, swapped), store.ErrNotFound)
	refused := b
	refused.ID, refused.State = "refused", store.Failed
	refused.Inputs = []store.Input{{FileID: "gone", BlobKey: "files/gone"}}
	must(t, m.CreateBatch(ctx, refused)) // it has no input to read

	got(m.DeleteFile(ctx, "t", "in"))(t)
	wantErr(t, "create a batch of a deleted file", m.CreateBatch(ctx, b), store.ErrNotFound)
	if _, err := m.Batch(ctx, "t", b.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the refused batch exists: %v", err)
	}
	wantDropped(t, m, "of a deleted file", "", []string{f.BlobKey, f.IndexKey}, f.BlobKey,
		f.IndexKey)
	late := newFile("late", "t")
	late.IndexKey = f.IndexKey
	wantErr(t, "create a file of dropped bytes", m.CreateFile(ctx, late), store.ErrConflict)
	if _, err := m.File(ctx, "t", "late"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the refused file exists: %v", err)
	}

	old, late2 := newFile("old", "t"), newBatch("late", "t")
	old.ExpiresAt = c.Now().Add(time.Minute)
	must(t, m.CreateFile(ctx, old))
	late2.Inputs = batchOf(old, "").Inputs
	wantDropped(t, m, "for a file", "old", []string{old.BlobKey}, old.BlobKey)
	wantErr(t, "create a batch of dropped bytes", m.CreateBatch(ctx, late2), store.ErrNotFound)
	c.advance(time.Hour)
	wantErr(t, "create a batch of an expired file", m.CreateBatch(ctx, late2), store.ErrNotFound)

	// Drops are forgotten after their retention.
	c.advance(store.DroppedRetention)
	for i := range 3 {
		got(m.DropBlobs(ctx, "", fmt.Sprintf("files/later-%d", i)))(t)
	}
	must(t, m.CreateFile(ctx, late))
}

// concurrentReferencesAndDrops creates a batch and deletes its input file concurrently. Either the
// batch is created and its input remains, or the bytes are dropped.
func concurrentReferencesAndDrops(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	for round := range 40 {
		f, b := newInput(t, m, fmt.Sprintf("in-%d", round))
		var created, ended error
		var dropped []string
		var racing sync.WaitGroup
		racing.Go(func() { created = m.CreateBatch(ctx, b) })
		racing.Go(func() {
			if _, ended = m.DeleteFile(ctx, "t", f.ID); ended == nil {
				dropped, ended = m.DropBlobs(ctx, "", f.BlobKey, f.IndexKey)
			}
		})
		racing.Wait()
		must(t, ended)
		switch {
		case created == nil && len(dropped) == 0:
		case errors.Is(created, store.ErrNotFound) && len(dropped) == 2:
		default:
			t.Errorf("round %d: batch created: %v; dropped: %q", round, created, dropped)
		}
	}
}

func batchesAreFinished(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	const lock = "finalize"
	f, b := newInput(t, m, "in")
	must(t, m.CreateBatch(ctx, b))
	b = got(m.Batch(ctx, "t", b.ID))(t)
	finished := func(b store.Batch) store.Batch {
		b.State, b.CompletedAt = store.Completed, c.Now()
		b.Outputs = []store.Output{{Input: -1, OutputID: "out", HasOutput: true}}
		return b
	}
	results := func(key string) []store.File {
		out := newFile("out", "t")
		out.BlobKey = key
		return []store.File{out}
	}
	slow, quick := got(m.Register(ctx, "slow", time.Minute))(t),
		got(m.Register(ctx, "quick", time.Minute))(t)
	lockBy := func(o store.Owner) int64 {
		epoch, ok, err := m.Lock(ctx, o, lock)
		if err != nil || !ok {
			t.Fatalf("lock: %v, %v", ok, err)
		}
		return epoch
	}
	earlier := lockBy(slow)
	if _, err := m.FinishBatch(ctx, slow, lock, earlier, b, nil); err == nil {
		t.Error("finished a batch in a state that is not terminal")
	}
	for what, try := range map[string]func() error{
		"at another epoch": func() error {
			_, err := m.FinishBatch(ctx, slow, lock, earlier+1, finished(b), nil)
			return err
		},
		"by another owner": func() error {
			_, err := m.FinishBatch(ctx, quick, lock, earlier, finished(b), nil)
			return err
		},
		"of another lock": func() error {
			_, err := m.FinishBatch(ctx, slow, "another", earlier, finished(b), nil)
			return err
		},
	} {
		wantErr(t, "finish "+what, try(), store.ErrFenced)
	}
	stale := finished(b)
	stale.Version--
	_, err := m.FinishBatch(ctx, slow, lock, earlier, stale, results("files/out.1"))
	wantErr(t, "finish by an old version", err, store.ErrConflict)

	// Slow is suspended for longer than its lease, and quick gets the lock.
	c.advance(2 * time.Minute)
	must(t, m.Renew(ctx, quick, time.Minute))
	later := lockBy(quick)
	_, err = m.FinishBatch(ctx, slow, lock, earlier, finished(b), results("files/out.1"))
	wantErr(t, "finish with a lock that was lost", err, store.ErrFenced)
	got(m.DropBlobs(ctx, "", "files/out.0"))(t)
	_, err = m.FinishBatch(ctx, quick, lock, later, finished(b), results("files/out.0"))
	wantErr(t, "finish with a dropped file", err, store.ErrConflict)
	if _, err := m.File(ctx, "t", "out"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a refused end left its file: %v", err)
	}
	if kept := got(m.Batch(ctx, "t", b.ID))(t); kept.State.Terminal() {
		t.Errorf("a refused end left the batch %s", kept.State)
	}
	c.advance(2 * time.Minute) // no other owner gets the lock
	ended := got(m.FinishBatch(ctx, quick, lock, later, finished(b), results("files/out.2")))(t)
	wantEqual(t, "finished batch", got(m.Batch(ctx, "t", b.ID))(t), ended)
	wantEqual(t, "result file", got(m.File(ctx, "t", "out"))(t).BlobKey, "files/out.2")
	wantDropped(t, m, "of the input's file and the results", "", []string{f.BlobKey, "files/out.1",
		"files/out.2"}, "files/out.1")

	// A late owner does not restore what the user has deleted.
	got(m.DeleteFile(ctx, "t", "out"))(t)
	must(t, m.Renew(ctx, slow, time.Minute))
	for _, o := range []struct {
		store.Owner
		epoch int64
	}{{slow, earlier}, {quick, later}} {
		if _, err := m.FinishBatch(ctx, o.Owner, lock, o.epoch, finished(b),
			results("files/out.3")); err == nil {
			t.Errorf("%s finished the batch once more", o.Node)
		}
	}
	if _, err := m.File(ctx, "t", "out"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the deleted result exists again: %v", err)
	}
	got(m.DeleteFile(ctx, "t", f.ID))(t)
	wantDropped(t, m, "of the input", "", []string{f.BlobKey}, f.BlobKey)
}
