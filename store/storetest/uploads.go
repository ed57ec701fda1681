package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func newUpload(c *clock, id string) store.Upload {
	return store.Upload{ID: id, Tenant: "t1", State: store.UploadPending, Filename: "a.jsonl", Purpose: "batch", MIMEType: "text/jsonl",
		Bytes: 99, CreatedAt: c.Now().Truncate(time.Microsecond), ExpiresAt: c.Now().Truncate(time.Microsecond).Add(time.Hour), FileLife: time.Minute}
}

func newPart(upload string, n int) store.Part {
	return store.Part{ID: fmt.Sprintf("%s-%d", upload, n), UploadID: upload, Bytes: int64(n), BlobKey: "parts/x",
		CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func uploadsEnd(t *testing.T, m store.Metadata, c *clock) {
	ctx := t.Context()
	u := newUpload(c, "u")
	must(t, m.CreateUpload(ctx, u))
	wantErr(t, "create again", m.CreateUpload(ctx, u), store.ErrExists)
	wantEqual(t, "upload", got(m.Upload(ctx, "t1", "u"))(t), u)
	_, err := m.Upload(ctx, "t2", "u")
	wantErr(t, "load another tenant's upload", err, store.ErrNotFound)
	_, err = m.EndUpload(ctx, "t2", "u", store.UploadCancelled, "")
	wantErr(t, "end another tenant's upload", err, store.ErrNotFound)

	u.State, u.FileID = store.UploadCompleted, "f"
	wantEqual(t, "ended upload", got(m.EndUpload(ctx, "t1", "u", store.UploadCompleted, "f"))(t), u)
	_, err = m.EndUpload(ctx, "t1", "u", store.UploadCancelled, "")
	wantErr(t, "end twice", err, store.ErrConflict)
	wantEqual(t, "upload read again", got(m.Upload(ctx, "t1", "u"))(t), u)

	must(t, m.CreateUpload(ctx, newUpload(c, "late")))
	c.advance(time.Hour)
	if late := got(m.Upload(ctx, "t1", "late"))(t); late.State != store.UploadExpired {
		t.Errorf("got an upload past its time as %s, want %s", late.State, store.UploadExpired)
	}
	_, err = m.EndUpload(ctx, "t1", "late", store.UploadCompleted, "f")
	wantErr(t, "end an expired upload", err, store.ErrConflict)
	wantErr(t, "add a part to an expired upload", m.AddPart(ctx, newPart("late", 1)), store.ErrConflict)
}

func uploadsParts(t *testing.T, m store.Metadata, c *clock) {
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
	if stale := got(m.StaleUploads(ctx, 10))(t); len(stale) != 0 {
		t.Errorf("got stale uploads %v while all are pending", stale)
	}
	got(m.EndUpload(ctx, "t1", "done", store.UploadCompleted, "f"))(t)
	got(m.EndUpload(ctx, "t1", "gone", store.UploadCancelled, ""))(t)
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
