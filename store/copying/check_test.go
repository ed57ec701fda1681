package copying_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/copying"
	"github.com/tidefill/tidefill/store/places"
)

// Check finds records without bytes and bytes without a record. What a running batch writes has its
// record last, and bytes of expired files may be gone.
func TestCheckComparesRecordsWithBytes(t *testing.T) {
	newEmbedded(t).open(t, func(b *store.Backend) {
		fill(t, b)
		now := time.Now()
		must(t, b.Records.CreateBatch(t.Context(), store.Batch{ID: "c", Tenant: "t",
			State: store.Finalizing, CreatedAt: now,
			Outputs: []store.Output{{OutputID: "out", ErrorID: "err"}}}))
		check := func(missing, leftovers []string) copying.Comparison {
			t.Helper()
			sum, err := copying.Check(t.Context(), b, nil)
			must(t, err)
			var absent, left []string
			for _, r := range sum.Missing {
				absent = append(absent, r.Kind+" "+r.ID+" "+r.Key)
			}
			for _, l := range sum.Leftovers {
				left = append(left, l.Key)
			}
			if !slices.Equal(absent, missing) || !slices.Equal(left, leftovers) {
				t.Errorf("got missing %q and leftovers %q, want %q and %q", absent, left, missing,
					leftovers)
			}
			return sum
		}
		check(nil, nil)
		for _, key := range []string{"files/1", "files/3"} {
			must(t, b.Blobs.Delete(t.Context(), key))
		}
		for _, key := range []string{"files/newer", "files/out.1", "uploads/u/p",
			"batches/ended/order"} {
			writeBlob(t, b, key, []byte("x"))
		}
		sum := check([]string{"batch b files/1", "file 1 files/1", "file 3 files/3"},
			[]string{"batches/ended/order", "files/newer", "uploads/u/p"})
		if sum.Newest.Sub(now).Abs() > time.Second {
			t.Errorf("the newest record is of %v, want %v", sum.Newest, now)
		}
	})
}

// addElsewhere adds a file in the storage of a profile.
func addElsewhere(t *testing.T, b *store.Backend, id string, at store.Storage) store.File {
	t.Helper()
	f := store.File{ID: id, Tenant: "t", Purpose: "batch_output", Bytes: 5,
		BlobKey: store.ResultKey("ended", id, 1), CreatedAt: time.Now(), Storage: &at}
	must(t, b.Records.CreateFile(t.Context(), f))
	return f
}

// Files in storages of profiles are looked up there. One whose storage is away is not missing.
func TestCheckLooksIntoStoragesOfProfiles(t *testing.T) {
	newEmbedded(t).open(t, func(b *store.Backend) {
		fill(t, b)
		p := places.New(places.Options{})
		defer p.Close()
		root := t.TempDir()
		there := store.Storage{Backend: "local", Bucket: filepath.Join(root, "there")}
		away := store.Storage{Backend: "local", Bucket: filepath.Join(root, "not", "mounted")}
		f := addElsewhere(t, b, "there", there)
		addElsewhere(t, b, "missing", there)
		addElsewhere(t, b, "away", away)
		writeBlob(t, &store.Backend{Blobs: p.Of(there)}, f.BlobKey, []byte("bytes"))
		sum, err := copying.Check(t.Context(), b, p)
		must(t, err)
		if sum.Elsewhere != 3 || len(sum.Missing) != 1 || sum.Missing[0].ID != "missing" ||
			len(sum.Unreached) != 1 || sum.Unreached[0].ID != "away" || sum.Fault == nil {
			t.Errorf("got %d elsewhere, missing %v, unreached %v for %v", sum.Elsewhere,
				sum.Missing, sum.Unreached, sum.Fault)
		}
	})
}

// A copy has the records of such files, and leaves their bytes where they are.
func TestCopyLeavesStoragesOfProfiles(t *testing.T) {
	from, to := newEmbedded(t), newEmbedded(t)
	var f store.File
	from.open(t, func(b *store.Backend) {
		f = addElsewhere(t, b, "elsewhere", store.Storage{Backend: "s3", Bucket: "results"})
	})
	sum, err := copyStores(t, from, to, nil)
	must(t, err)
	if sum.Elsewhere != 1 || sum.ElsewhereBytes != 5 || sum.MissingBlobs != 0 ||
		sum.Blobs.Total != 0 {
		t.Errorf("copied %+v", sum)
	}
	to.open(t, func(b *store.Backend) {
		got, err := b.Records.File(t.Context(), "t", f.ID)
		must(t, err)
		if got.Storage == nil || *got.Storage != *f.Storage || got.BlobKey != f.BlobKey {
			t.Errorf("got the record %+v", got)
		}
	})
}
