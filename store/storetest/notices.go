package storetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// TestNotices runs the suite for Notices. It uses Notices and Batches.
func TestNotices(t *testing.T, open Open) {
	run(t, open, []test{
		{"notices are kept until they are delivered", noticesAreKept},
		{"one process adds the notices of a change", noticesAreAddedOnce},
		{"notices go with their batch", noticesGoWithTheirBatch},
	})
}

func noticesAreKept(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	at := c.Now().UTC().Truncate(time.Microsecond)
	var batches []string
	var notices []store.Notice
	for i := range 4 {
		batches = append(batches, fmt.Sprint("b", i))
		addBatch(t, m, batches[i], 1)
		notices = append(notices, store.Notice{ID: fmt.Sprint("e", i), Batch: batches[i],
			Event: "batch.x", CreatedAt: at, Due: at.Add(time.Duration(-i) * time.Second)})
	}
	notices[3].Due = time.Time{} // only remembered
	wantEqual(t, "cursor of a new endpoint", got(m.NoticeCursor(ctx, "a"))(t), store.Cursor(""))
	must(t, m.AddNotices(ctx, "a", "", "1", nil))
	must(t, m.AddNotices(ctx, "a", "1", "2", notices))
	wantEqual(t, "cursor", got(m.NoticeCursor(ctx, "a"))(t), store.Cursor("2"))
	wantErr(t, "add from an older cursor", m.AddNotices(ctx, "a", "1", "3", notices),
		store.ErrConflict)
	wantEqual(t, "cursor of another endpoint", got(m.NoticeCursor(ctx, "b"))(t), store.Cursor(""))

	due := func(what string, at time.Time, limit int, want ...store.Notice) {
		t.Helper()
		wantEqual(t, what, slices.Clip(got(m.DueNotices(ctx, "a", at, limit))(t)), want)
	}
	due("longest due first", at, 10, notices[2], notices[1], notices[0])
	due("at most", at, 2, notices[2], notices[1])
	due("before", at.Add(-time.Microsecond), 10, notices[2], notices[1])
	pending := func(want int) {
		t.Helper()
		wantEqual(t, "pending notices", got(m.PendingNotices(ctx, "a"))(t), want)
	}
	pending(3)
	last := got(m.LastNotices(ctx, "a", append(batches, "unknown")))(t)
	wantEqual(t, "last notices", len(last), 4)
	wantEqual(t, "a last notice", last["b3"], notices[3])
	wantEqual(t, "of another endpoint", len(got(m.LastNotices(ctx, "b", batches))(t)), 0)

	failed := notices[2]
	failed.Attempts, failed.Due = 1, at.Add(time.Hour)
	must(t, m.UpdateNotice(ctx, "a", failed))
	due("after an attempt that failed", at, 10, notices[1], notices[0])
	due("later", failed.Due, 10, notices[1], notices[0], failed)
	done := notices[1]
	done.Attempts, done.Due = 1, time.Time{}
	must(t, m.UpdateNotice(ctx, "a", done))
	due("after a delivery", at, 10, notices[0])
	pending(2)

	newer := notices[2]
	newer.ID, newer.Event = "e9", "batch.y"
	must(t, m.AddNotices(ctx, "a", "2", "2", []store.Notice{newer}))
	wantErr(t, "update of a notice that was replaced", m.UpdateNotice(ctx, "a", failed),
		store.ErrNotFound)
	due("after it was replaced", at, 10, newer, notices[0])
}

// noticesAreAddedOnce lets processes add notices of the same change. One of them succeeds.
func noticesAreAddedOnce(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	var added atomic.Int32
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			if m.AddNotices(ctx, "a", "", "1", nil) == nil {
				added.Add(1)
			}
		})
	}
	running.Wait()
	wantEqual(t, "successful calls", added.Load(), int32(1))
}

func noticesGoWithTheirBatch(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	at := c.Now()
	addBatch(t, m, "b", 1)
	b := got(m.Batch(ctx, "", "b"))(t)
	n := store.Notice{ID: "e", Batch: "b", Event: "batch.x", CreatedAt: at, Due: at}
	must(t, m.AddNotices(ctx, "a", "", "1", []store.Notice{n,
		{ID: "e2", Batch: "unknown", Event: "batch.x", CreatedAt: at, Due: at}}))
	wantEqual(t, "due notices", len(got(m.DueNotices(ctx, "a", at, 10))(t)), 1)
	b.State, b.FailedAt = store.Failed, at
	got(m.UpdateBatch(ctx, b))(t)
	got(m.DeleteBatch(ctx, b.Tenant, "b"))(t)
	wantEqual(t, "due notices of a deleted batch", len(got(m.DueNotices(ctx, "a", at, 10))(t)), 0)
	wantErr(t, "update of its notice", m.UpdateNotice(ctx, "a", n), store.ErrNotFound)
}
