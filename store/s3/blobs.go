package s3

import (
	"context"
	"fmt"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// Blobs implements [store.Blobs].
type Blobs struct {
	bucket *Bucket
	root   string // begins the names of the objects
	check  func(key string) error
}

var _ store.Blobs = (*Blobs)(nil)

// name returns the name of a blob's object.
func (b *Blobs) name(key string) string { return b.root + key }

// Create implements [store.Blobs].
func (b *Blobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	err := b.check(key)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && b.bucket.knownMisplaced() != nil {
		err = b.bucket.Misplaced(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("create blob %s: %w", key, err)
	}
	return &blobWriter{key, &writer{bucket: b.bucket, ctx: ctx, key: b.name(key)}}, nil
}

// Open implements [store.Blobs].
func (b *Blobs) Open(ctx context.Context, key string) (store.Blob, error) {
	err := b.check(key)
	var o *blob
	if err == nil {
		o, err = b.bucket.openBlob(ctx, b.name(key))
	}
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", key, err)
	}
	return o, nil
}

// Delete implements [store.Blobs].
func (b *Blobs) Delete(ctx context.Context, key string) error {
	err := b.check(key)
	if err == nil {
		err = b.bucket.remove(ctx, []string{b.name(key)})
	}
	if err != nil {
		return fmt.Errorf("delete blob %s: %w", key, err)
	}
	return nil
}

// DeletePrefix implements [store.Blobs].
func (b *Blobs) DeletePrefix(ctx context.Context, prefix string) error {
	err := b.check(prefix)
	if err == nil {
		err = b.deletePrefix(ctx, b.name(prefix)+"/")
	}
	if err != nil {
		return fmt.Errorf("delete blobs below %s: %w", prefix, err)
	}
	return nil
}

func (b *Blobs) deletePrefix(ctx context.Context, prefix string) error {
	for after := ""; ; {
		page, err := b.bucket.listPage(ctx, prefix, after, maxAtOnce)
		if err != nil || len(page) == 0 {
			return err
		}
		keys := make([]string, len(page))
		for i, o := range page {
			keys[i] = o.Key
		}
		if err := b.bucket.remove(ctx, keys); err != nil {
			return err
		}
		if len(page) < maxAtOnce {
			return nil
		}
		after = keys[len(keys)-1]
	}
}

// List implements [store.Blobs]. CommittedAt is the storage's own time, which Amazon S3 rounds to
// seconds, and which is when the first part was begun if the blob has several.
func (b *Blobs) List(
	ctx context.Context, prefix, after string, limit int,
) ([]store.BlobInfo, error) {
	err := b.check(prefix)
	var infos []store.BlobInfo
	if err == nil {
		infos, err = b.list(ctx, b.name(prefix)+"/", after, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("list blobs below %s: %w", prefix, err)
	}
	return infos, nil
}

// list is List of the objects whose names start with below.
func (b *Blobs) list(
	ctx context.Context, below, after string, limit int,
) (infos []store.BlobInfo, err error) {
	if after != "" {
		after = b.name(after)
	}
	for limit == 0 || len(infos) < limit {
		n := maxAtOnce
		if limit > 0 {
			n = min(n, limit-len(infos))
		}
		page, err := b.bucket.listPage(ctx, below, after, n)
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			infos = append(infos, store.BlobInfo{Bytes: o.Size, CommittedAt: o.LastModified,
				Key: strings.TrimPrefix(o.Key, b.root)})
		}
		if len(page) < n {
			break
		}
		after = page[n-1].Key
	}
	return infos, nil
}
