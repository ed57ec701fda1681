package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

func newFile(id, tenant string) store.File {
	return store.File{ID: id, Tenant: tenant, Purpose: "batch", Filename: id + ".jsonl", Bytes: 12,
		CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), BlobKey: "files/" + id}
}

func filesAreStored(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	f := newFile("f1", "t1")
	f.Filename = "<a> & \"b\" ü\x00.jsonl"
	f.Summary = &batchfile.Summary{}
	f.ExpiresAt = c.Now().Add(time.Hour).In(time.FixedZone("east", 7200))
	must(t, m.CreateFile(ctx, f))
	wantErr(t, "create again", m.CreateFile(ctx, newFile("f1", "t2")), store.ErrExists)

	f.ExpiresAt = f.ExpiresAt.UTC().Truncate(time.Microsecond)
	wantEqual(t, "file", got(m.File(ctx, "t1", "f1"))(t), f)
	_, err := m.File(ctx, "t2", "f1")
	wantErr(t, "load another tenant's file", err, store.ErrNotFound)
	wantEqual(t, "file read across tenants", got(m.File(ctx, "", "f1"))(t), f)
	for _, tenant := range []string{"t2", ""} {
		_, err = m.DeleteFile(ctx, tenant, "f1")
		wantErr(t, fmt.Sprintf("delete a file as tenant %q", tenant), err, store.ErrNotFound)
	}
	wantEqual(t, "deleted file", got(m.DeleteFile(ctx, "t1", "f1"))(t), f)
	_, err = m.DeleteFile(ctx, "t1", "f1")
	wantErr(t, "delete twice", err, store.ErrNotFound)
	_, err = m.File(ctx, "t1", "f1")
	wantErr(t, "load deleted file", err, store.ErrNotFound)
}

func filesAreListed(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	var all, outputs []string
	for i := range 11 {
		f := newFile(fmt.Sprintf("f%02d", i), "t1")
		f.CreatedAt = f.CreatedAt.Add(time.Duration(i/3) * time.Second) // three of a time
		if i%2 == 1 {
			f.Purpose = "batch_output"
			outputs = append(outputs, f.ID)
		}
		all = append(all, f.ID)
		must(t, m.CreateFile(ctx, f))
		must(t, m.CreateFile(ctx, newFile(fmt.Sprintf("other%02d", i), "t2")))
	}
	for _, test := range []struct {
		purpose string
		want    []string
	}{{"", all}, {"batch_output", outputs}, {"nothing", nil}} {
		for _, limit := range []int{1, 2, 4, 5, 6, 11, 100, 0} {
			for _, ascending := range []bool{true, false} {
				want := slices.Clone(test.want)
				if !ascending {
					slices.Reverse(want)
				}
				listed := listFiles(t, m, store.FileQuery{Purpose: test.purpose, Limit: limit,
					Ascending: ascending})
				wantEqual(t, fmt.Sprintf("purpose %q, limit %d, ascending %t", test.purpose, limit,
					ascending), listed, want)
			}
		}
	}
	for _, cursor := range []string{"nowhere", "other00"} {
		_, err := m.ListFiles(ctx, "t1", store.FileQuery{After: cursor, Limit: 1})
		wantErr(t, "list after "+cursor, err, store.ErrBadCursor)
	}
}

// listFiles follows the pages of t1's files to the end.
func listFiles(t *testing.T, m Store, q store.FileQuery) (ids []string) {
	t.Helper()
	for {
		page := got(m.ListFiles(t.Context(), "t1", q))(t)
		for _, f := range page.Items {
			ids = append(ids, f.ID)
		}
		if !page.More {
			return ids
		}
		if len(page.Items) != q.Limit || len(ids) > 100 {
			t.Fatalf("page before the last has %d items, want %d; %d so far", len(page.Items),
				q.Limit, len(ids))
		}
		if q.After = ""; len(ids)%2 == 0 { // either leads on
			q.Next = page.Next
		} else {
			q.After, q.Next = ids[len(ids)-1], ""
		}
	}
}

func filesAreListedWithoutSummaries(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	for _, id := range []string{"f1", "f2", "f3"} {
		f := newFile(id, "t")
		f.Summary = &batchfile.Summary{Faults: []batchfile.Fault{{Code: "x"}}}
		f.ExpiresAt = c.Now().Add(time.Minute)
		must(t, m.CreateFile(ctx, f))
	}
	q := store.FileQuery{Limit: 2, Ascending: true}
	page := got(m.ListFiles(ctx, "t", q))(t)
	got(m.DeleteFile(ctx, "t", "f2"))(t)
	q.Next = page.Next
	last := got(m.ListFiles(ctx, "t", q))(t)
	if len(last.Items) != 1 || last.Items[0].ID != "f3" {
		t.Errorf("got %v after a file that was deleted since, want f3", last.Items)
	}
	c.advance(time.Minute)
	for _, f := range slices.Concat(page.Items, last.Items, got(m.ExpiredFiles(ctx, 10))(t)) {
		if f.Summary != nil {
			t.Errorf("file %s is listed with its summary", f.ID)
		}
	}
	q.Next = "nonsense"
	_, err := m.ListFiles(ctx, "t", q)
	wantErr(t, "list after nonsense", err, store.ErrBadCursor)
}

func filesExpire(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	short, long := newFile("short", "t1"), newFile("long", "t1")
	short.ExpiresAt = c.Now().Add(time.Minute)
	must(t, m.CreateFile(ctx, short))
	must(t, m.CreateFile(ctx, long))
	if expired := got(m.ExpiredFiles(ctx, 10))(t); len(expired) != 0 {
		t.Errorf("expired before their time: %v", expired)
	}
	c.advance(time.Minute)
	for _, tenant := range []string{"t1", ""} {
		_, err := m.File(ctx, tenant, "short")
		wantErr(t, fmt.Sprintf("load expired file as tenant %q", tenant), err, store.ErrNotFound)
	}
	_, err := m.DeleteFile(ctx, "t1", "short")
	wantErr(t, "delete expired file", err, store.ErrNotFound)
	wantEqual(t, "listed", listFiles(t, m, store.FileQuery{Limit: 1}), []string{"long"})

	expired := got(m.ExpiredFiles(ctx, 10))(t)
	if len(expired) != 1 || expired[0].ID != "short" {
		t.Fatalf("got expired files %v, want short alone", expired)
	}
	must(t, m.PurgeFile(ctx, "short"))
	must(t, m.PurgeFile(ctx, "short"))
	if expired := got(m.ExpiredFiles(ctx, 10))(t); len(expired) != 0 {
		t.Errorf("expired after the purge: %v", expired)
	}
}
