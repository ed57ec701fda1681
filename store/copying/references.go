package copying

import (
	"context"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Reference is a blob that a record refers to.
type Reference struct {
	Key string
	// Needed is false for expired files and parts of uploads, whose bytes may be gone.
	Needed bool
	Kind   string // of the record: file, batch, part
	ID     string // of the record
	Tenant string // of a file or batch
	Name   string // of a file
	Bytes  int64  // of a file
	// Storage is that of a profile, which holds the blob; nil: it is in the Blobs of the backend.
	Storage *store.Storage
}

const batchReference = "batch"

// eachReference calls each for every blob that the records refer to, those of batches that have not
// ended first. A blob may have several references.
func eachReference(ctx context.Context, b *store.Backend, each func(Reference) error) error {
	add := func(r Reference, keys ...string) error {
		for _, r.Key = range keys {
			if r.Key == "" {
				continue
			}
			if err := each(r); err != nil {
				return err
			}
		}
		return nil
	}
	for row, err := range b.Records.ExportRows(ctx, store.BatchRows) {
		if err != nil {
			return err
		}
		batch := row.Value.(store.StoredBatch)
		if batch.State.Terminal() {
			continue
		}
		keys, err := blobsOf(ctx, b, batch)
		if err != nil {
			return err
		}
		err = add(Reference{Needed: true, Kind: batchReference, ID: batch.ID,
			Tenant: batch.Tenant}, keys...)
		if err != nil {
			return err
		}
	}
	now := time.Now()
	for row, err := range b.Records.ExportRows(ctx, store.FileRows) {
		if err != nil {
			return err
		}
		f := row.Value.(store.File)
		needed := f.ExpiresAt.IsZero() || f.ExpiresAt.After(now)
		err = add(Reference{Needed: needed, Kind: "file", ID: f.ID, Tenant: f.Tenant,
			Name: f.Filename, Bytes: f.Bytes, Storage: f.Storage}, f.BlobKey, f.IndexKey)
		if err != nil {
			return err
		}
	}
	for row, err := range b.Records.ExportRows(ctx, store.PartRows) {
		if err != nil {
			return err
		}
		part := row.Value.(store.Part)
		if err := add(Reference{Kind: "part", ID: part.ID}, part.BlobKey); err != nil {
			return err
		}
	}
	return nil
}

// blobsOf returns the inputs of a batch, and what the dispatcher has stored for it.
func blobsOf(
	ctx context.Context, b *store.Backend, batch store.StoredBatch,
) (keys []string, err error) {
	for _, in := range batch.Inputs {
		keys = append(keys, in.BlobKey, in.IndexKey)
	}
	own, err := b.Blobs.List(ctx, "batches/"+batch.ID, "", 0)
	for _, blob := range own {
		keys = append(keys, blob.Key)
	}
	return keys, err
}
