package copying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Comparison is what [Check] has found.
type Comparison struct {
	Blobs int   // that are there
	Bytes int64 // of them
	// Missing are blobs that records refer to and that are not there. Those of expired files don't
	// count.
	Missing []Reference
	// Elsewhere are the files in storages of profiles, which other counts and lists leave out but
	// for Missing.
	Elsewhere int
	// Unreached are those of which it could not be found out whether their bytes are there.
	Unreached []Reference
	// Fault is why, of the first of them.
	Fault error
	// Leftovers are blobs that no record refers to, by key.
	Leftovers []store.BlobInfo
	// Newest is the newest time of a file or batch. Leftovers after it come from a time that the
	// records don't know; zero: there is neither.
	Newest time.Time
}

// Places opens the storages of profiles.
type Places interface {
	Of(s store.Storage) store.Blobs
}

// Check compares the records of a store with the bytes of files, there and in the storages of
// profiles. It changes nothing, and processes may use the store meanwhile.
func Check(ctx context.Context, b *store.Backend, places Places) (sum Comparison, err error) {
	// Bytes are stored before their records, so what is listed first has its record by then.
	left := map[string]store.BlobInfo{}
	for _, prefix := range []string{"files", "uploads", "batches"} {
		infos, err := b.Blobs.List(ctx, prefix, "", 0)
		if err != nil {
			return sum, fmt.Errorf("check the store: %w", err)
		}
		for _, info := range infos {
			left[info.Key] = info
			sum.Bytes += info.Bytes
		}
	}
	sum.Blobs = len(left)
	there := maps.Clone(left)
	var absent []Reference
	// First, or a batch that ends meanwhile would be in neither list.
	if err := sum.dateRecords(ctx, b, left); err != nil {
		return sum, fmt.Errorf("check the store: %w", err)
	}
	err = eachReference(ctx, b, func(r Reference) error {
		if r.Storage != nil {
			sum.Elsewhere++
			if r.Needed {
				absent = append(absent, r) // each is looked up by itself
			}
			return nil
		}
		delete(left, r.Key)
		if _, is := there[r.Key]; !is && r.Needed {
			absent = append(absent, r)
		}
		return nil
	})
	if err == nil {
		err = sum.confirm(ctx, b, places, absent)
	}
	if err != nil {
		return sum, fmt.Errorf("check the store: %w", err)
	}
	sum.Leftovers = slices.SortedFunc(maps.Values(left), func(a, b store.BlobInfo) int {
		return strings.Compare(a.Key, b.Key)
	})
	return sum, nil
}

// confirm keeps the references whose blob was not just stored, and whose record was not just
// removed.
func (sum *Comparison) confirm(
	ctx context.Context, b *store.Backend, places Places, absent []Reference,
) error {
	for _, r := range absent {
		blobs := b.Blobs
		if r.Storage != nil {
			blobs = places.Of(*r.Storage)
		}
		_, err := sizeOf(ctx, blobs, r.Key)
		if err == nil {
			continue
		}
		if away := new(store.StorageError); errors.As(err, &away) {
			sum.Unreached, sum.Fault = append(sum.Unreached, r), cmp.Or(sum.Fault, err)
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if r.Kind == batchReference {
			_, err = b.Records.Batch(ctx, "", r.ID)
		} else {
			_, err = b.Records.File(ctx, "", r.ID)
		}
		switch {
		case err == nil:
			sum.Missing = append(sum.Missing, r)
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
	}
	return nil
}

// dateRecords finds the newest time of the records, and takes from left what batches that have not
// ended may be writing, whose records come last.
func (sum *Comparison) dateRecords(
	ctx context.Context, b *store.Backend, left map[string]store.BlobInfo,
) error {
	results := map[string]bool{}
	note := func(at time.Time) {
		if at.After(sum.Newest) {
			sum.Newest = at
		}
	}
	for row, err := range b.Records.ExportRows(ctx, store.BatchRows) {
		if err != nil {
			return err
		}
		batch := row.Value.(store.StoredBatch)
		note(batch.CreatedAt)
		note(batch.EndedAt())
		if batch.State.Terminal() {
			continue
		}
		for _, output := range batch.Outputs {
			results[output.OutputID], results[output.ErrorID] = true, true
		}
	}
	for row, err := range b.Records.ExportRows(ctx, store.FileRows) {
		if err != nil {
			return err
		}
		note(row.Value.(store.File).CreatedAt)
	}
	maps.DeleteFunc(left, func(key string, _ store.BlobInfo) bool {
		name, isFile := strings.CutPrefix(key, "files/")
		id, _, _ := strings.Cut(name, ".")
		return isFile && results[id]
	})
	return nil
}
