package copying_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/copying"
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
			sum, err := copying.Check(t.Context(), b)
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
