package storetest

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func storeAnswers(t *testing.T, m Store, _ *clock) { must(t, m.Ping(t.Context())) }

func newestTimeIsReturned(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	if newest := got(m.Newest(ctx))(t); !newest.IsZero() {
		t.Errorf("got %v of an empty store", newest)
	}
	want := func(what string, at time.Time) {
		t.Helper()
		wantEqual(t, "newest time after "+what, got(m.Newest(ctx))(t),
			at.Truncate(time.Microsecond))
	}
	f := newFile("f", "t")
	f.CreatedAt = c.Now()
	must(t, m.CreateFile(ctx, f))
	want("a file", f.CreatedAt)
	c.advance(time.Hour)
	b := newBatch("b", "t")
	b.CreatedAt = c.Now()
	must(t, m.CreateBatch(ctx, b))
	want("a batch", b.CreatedAt)
	c.advance(time.Hour)
	got(store.Modify(ctx, m, "", "b", func(b *store.Batch) error {
		b.State, b.CompletedAt = store.Completed, c.Now()
		return nil
	}))(t)
	want("its end", c.Now())
	c.advance(time.Hour)
	o := got(m.Register(ctx, "n", time.Minute))(t)
	want("a lease", c.Now().Add(time.Minute))
	c.advance(time.Hour)
	must(t, m.Unregister(ctx, o))
	want("the end of the lease", c.Now())
	older := newFile("older", "t")
	must(t, m.CreateFile(ctx, older))
	want("an older file", c.Now())
}
