package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func newUpload(c *clock, id string) store.Upload {
	return store.Upload{ID: id, Tenant: "t1", State: store.UploadPending,
		Filename: "a.jsonl", Purpose: "batch", MIMEType: "text/jsonl",
		Bytes: 99, CreatedAt: c.Now().Truncate(time.Microsecond),
		ExpiresAt: c.Now().Truncate(time.Microsecond).Add(time.Hour), FileLife: time.Minute}
}

func newPart(upload string, n int) store.Part {
	return store.Part{ID: fmt.Sprintf("%s-%d", upload, n), UploadID: upload, Bytes: int64(n),
		BlobKey:   "parts/x",
		CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func uploadsEndOnce(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	u := newUpload(c, "u")
	must(t, m.CreateUpload(ctx, u))
	wantErr(t, "create again", m.CreateUpload(ctx, u), store.ErrExists)
	wantEqual(t, "upload", got(m.Upload(ctx, "t1", "u"))(t), u)
	_, err := m.Upload(ctx, "t2", "u")
	wantErr(t, "load another tenant's upload", err, store.ErrNotFound)
	wantEqual(t, "upload read across tenants", got(m.Upload(ctx, "", "u"))(t), u)
	for _, tenant := range []string{"t2", ""} {
		_, err = m.CancelUpload(ctx, tenant, "u")
		wantErr(t, fmt.Sprintf("cancel an upload as tenant %q", tenant), err, store.ErrNotFound)
		_, err = m.CompleteUpload(ctx, tenant, "u", newFile("f", "t1"))
		wantErr(t, fmt.Sprintf("complete an upload as tenant %q", tenant), err, store.ErrNotFound)
	}
	must(t, m.CreateFile(ctx, newFile("taken", "t1")))
	_, err = m.CompleteUpload(ctx, "t1", "u", newFile("taken", "t1"))
	wantErr(t, "complete an upload with a file that exists", err, store.ErrExists)
	wantEqual(t, "upload whose file was refused", got(m.Upload(ctx, "t1", "u"))(t), u)

	u.State, u.FileID = store.UploadCompleted, "f"
	wantEqual(t, "ended upload", got(m.CompleteUpload(ctx, "t1", "u", newFile("f", "t1")))(t), u)
	wantEqual(t, "file of the upload", got(m.File(ctx, "t1", "f"))(t), newFile("f", "t1"))
	_, err = m.CancelUpload(ctx, "t1", "u")
	wantErr(t, "cancel what is completed", err, store.ErrConflict)
	_, err = m.CompleteUpload(ctx, "t1", "u", newFile("f2", "t1"))
	wantErr(t, "complete twice", err, store.ErrConflict)
	_, err = m.File(ctx, "t1", "f2")
	wantErr(t, "load the file of the second completion", err, store.ErrNotFound)
	wantEqual(t, "upload read again", got(m.Upload(ctx, "t1", "u"))(t), u)

	must(t, m.CreateUpload(ctx, newUpload(c, "late")))
	c.advance(time.Hour)
	if late := got(m.Upload(ctx, "t1", "late"))(t); late.State != store.UploadExpired {
		t.Errorf("got an upload past its time as %s, want %s", late.State, store.UploadExpired)
	}
	_, err = m.CompleteUpload(ctx, "t1", "late", newFile("f3", "t1"))
	wantErr(t, "complete an expired upload", err, store.ErrConflict)
	wantErr(t, "add a part to an expired upload", m.AddPart(ctx, newPart("late", 1)),
		store.ErrConflict)
}

func uploadsTakeParts(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	wantErr(t, "add a part to no upload", m.AddPart(ctx, newPart("nothing", 1)), store.ErrNotFound)
	want := map[string][]store.Part{}
	for _, id := range []string{"done", "late", "gone"} {
		must(t, m.CreateUpload(ctx, newUpload(c, id)))
		for n := range 3 {
			p := newPart(id, 3-n) // ids in falling order: only the arrival counts
			want[id] = append(want[id], p)
			must(t, m.AddPart(ctx, p))
		}
	}
	wantEqual(t, "parts", got(m.Parts(ctx, "done"))(t), want["done"])
	for id, want := range map[string][2]int64{"done": {3, 6}, "nothing": {}} {
		parts, bytes, err := m.SumParts(ctx, id)
		must(t, err)
		wantEqual(t, "parts and bytes of "+id, [2]int64{int64(parts), bytes}, want)
	}
	if stale := got(m.StaleUploads(ctx, 10))(t); len(stale) != 0 {
		t.Errorf("got stale uploads %v while all are pending", stale)
	}
	got(m.CompleteUpload(ctx, "t1", "done", newFile("f", "t1")))(t)
	got(m.CancelUpload(ctx, "t1", "gone"))(t)
	wantErr(t, "add a part after the end", m.AddPart(ctx, newPart("done", 9)), store.ErrConflict)
	if n := len(got(m.StaleUploads(ctx, 10))(t)); n != 2 {
		t.Errorf("got %d stale uploads after two ended, want 2", n)
	}
	c.advance(time.Hour)
	stale := got(m.StaleUploads(ctx, 10))(t)
	if len(stale) != 3 || len(got(m.StaleUploads(ctx, 2))(t)) != 2 {
		t.Errorf("got stale uploads %v, want three", stale)
	}
	for _, u := range stale {
		must(t, m.DropParts(ctx, u.ID))
		if parts := got(m.Parts(ctx, u.ID))(t); len(parts) != 0 {
			t.Errorf("upload %s has parts %v after they were dropped", u.ID, parts)
		}
	}
	if stale := got(m.StaleUploads(ctx, 10))(t); len(stale) != 0 {
		t.Errorf("got stale uploads %v without parts", stale)
	}
}

func uploadsAreCounted(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	pending := func(want int) {
		t.Helper()
		wantEqual(t, "count of pending uploads", got(m.CountPending(ctx, "t1"))(t), want)
	}
	pending(0)
	other := newUpload(c, "other")
	other.Tenant = "t2"
	must(t, m.CreateUpload(ctx, other))
	for _, id := range []string{"a", "b"} {
		must(t, m.CreateUpload(ctx, newUpload(c, id)))
	}
	c.advance(time.Minute)
	must(t, m.CreateUpload(ctx, newUpload(c, "c")))
	pending(3)
	got(m.CompleteUpload(ctx, "t1", "a", newFile("f", "t1")))(t)
	pending(2)
	c.advance(59 * time.Minute)
	pending(1) // b has expired
}

func uploadsArePurged(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	for _, id := range []string{"done", "late", "parted"} {
		must(t, m.CreateUpload(ctx, newUpload(c, id)))
	}
	must(t, m.AddPart(ctx, newPart("parted", 1)))
	got(m.CompleteUpload(ctx, "t1", "done", newFile("f", "t1")))(t)
	first := got(m.Upload(ctx, "t1", "late"))(t).ExpiresAt
	c.advance(time.Second)
	must(t, m.CreateUpload(ctx, newUpload(c, "younger")))

	wantEqual(t, "purged before their time", got(m.PurgeUploads(ctx, first, 10))(t), 0)
	after := first.Add(time.Microsecond)
	wantEqual(t, "purged under a limit", got(m.PurgeUploads(ctx, after, 1))(t), 1)
	wantEqual(t, "purged after that", got(m.PurgeUploads(ctx, after, 10))(t), 1)
	for id, want := range map[string]error{"done": store.ErrNotFound, "late": store.ErrNotFound,
		"parted": nil, "younger": nil} {
		_, err := m.Upload(ctx, "t1", id)
		wantErr(t, "load upload "+id, err, want)
	}
	must(t, m.DropParts(ctx, "parted"))
	wantEqual(t, "purged without parts", got(m.PurgeUploads(ctx, after, 10))(t), 1)
}

func usageCountsFilesAndParts(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	used := func(after string, want int64) {
		t.Helper()
		wantEqual(t, "usage after "+after, got(m.UsedBytes(ctx, "t1"))(t), want)
	}
	file := func(id string, bytes int64) store.File {
		f := newFile(id, "t1")
		f.Bytes = bytes
		return f
	}
	used("nothing", 0)
	other := newFile("other", "t2")
	other.Bytes = 1 << 40
	must(t, m.CreateFile(ctx, other))
	must(t, m.CreateFile(ctx, file("f1", 100)))
	used("a file", 100)
	wantErr(t, "create again", m.CreateFile(ctx, file("f1", 100)), store.ErrExists)
	used("a file that was refused", 100)
	must(t, m.CreateBatch(ctx, newBatch("b", "t1"), file("f2", 20)))
	used("a batch with a file", 120)
	must(t, m.CreateUpload(ctx, newUpload(c, "u")))
	must(t, m.AddPart(ctx, newPart("u", 3)))
	must(t, m.AddPart(ctx, newPart("u", 4)))
	used("two parts", 127)
	got(m.CompleteUpload(ctx, "t1", "u", file("f3", 7)))(t)
	used("a completion", 134)
	must(t, m.DropParts(ctx, "u"))
	used("the end of parts", 127)
	got(m.DeleteFile(ctx, "t1", "f1"))(t)
	used("a deletion", 27)
	must(t, m.PurgeFile(ctx, "f2"))
	must(t, m.PurgeFile(ctx, "f2"))
	used("a purge", 7)
	wantEqual(t, "usage of the other tenant", got(m.UsedBytes(ctx, "t2"))(t), int64(1<<40))
}
