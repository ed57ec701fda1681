package storetest

import (
	"cmp"
	"slices"
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

func tenantsAreListed(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	want := func(after string, want ...store.TenantTotals) {
		t.Helper()
		all := got(m.Tenants(ctx))(t)
		slices.SortFunc(all, func(a, b store.TenantTotals) int {
			return cmp.Compare(a.Tenant, b.Tenant)
		})
		wantEqual(t, "tenants after "+after, all, want)
	}
	want("nothing")
	f := newFile("f", "files")
	f.Bytes, f.ExpiresAt = 100, c.Now().Add(time.Hour)
	must(t, m.CreateFile(ctx, f))
	must(t, m.CreateBatch(ctx, newBatch("running", "batches")))
	for i, end := range []store.State{store.Completed, store.Failed, store.Expired,
		store.Cancelled} {
		b := newBatch("ended"+string(rune('0'+i)), "batches")
		must(t, m.CreateBatch(ctx, b))
		got(store.Modify(ctx, m, "", b.ID, func(b *store.Batch) error {
			b.State = end
			return nil
		}))(t)
	}
	must(t, m.CreateUpload(ctx, newUpload(c, "u")))
	must(t, m.AddPart(ctx, newPart("u", 4)))
	batches := store.TenantTotals{Tenant: "batches", Batches: 5, Active: 1}
	part := store.TenantTotals{Tenant: "t1", Bytes: 4}
	want("one of each kind", batches, store.TenantTotals{Tenant: "files", Files: 1, Bytes: 100},
		part)
	c.advance(time.Hour)
	want("the expiry of a file", batches, store.TenantTotals{Tenant: "files", Bytes: 100}, part)
	must(t, m.PurgeFile(ctx, "f"))
	want("its purge", batches, part)
}
