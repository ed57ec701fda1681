package places

import (
	"context"
	"io"

	"github.com/tidefill/tidefill/store"
)

// blobs implements [store.Blobs] for one place.
type blobs struct{ place *place }

var _ store.Blobs = (*blobs)(nil)

// with calls do with an open client.
func (b *blobs) with(ctx context.Context, do func(*client) error) error {
	c, err := b.place.open(ctx)
	if err != nil {
		return err
	}
	return b.place.note(ctx, c, do(c))
}

// Create implements [store.Blobs].
func (b *blobs) Create(ctx context.Context, key string) (w store.BlobWriter, err error) {
	err = b.with(ctx, func(c *client) error {
		made, err := c.Create(ctx, key)
		if err == nil {
			w = &blobWriter{made, b.place, c, ctx}
		}
		return err
	})
	return w, err
}

// Open implements [store.Blobs].
func (b *blobs) Open(ctx context.Context, key string) (o store.Blob, err error) {
	err = b.with(ctx, func(c *client) error {
		opened, err := c.Open(ctx, key)
		if err == nil {
			o = &blob{opened, b.place, c, ctx}
		}
		return err
	})
	return o, err
}

// Delete implements [store.Blobs].
func (b *blobs) Delete(ctx context.Context, key string) error {
	return b.with(ctx, func(c *client) error { return c.Delete(ctx, key) })
}

// DeletePrefix implements [store.Blobs].
func (b *blobs) DeletePrefix(ctx context.Context, prefix string) error {
	return b.with(ctx, func(c *client) error { return c.DeletePrefix(ctx, prefix) })
}

// List implements [store.Blobs].
func (b *blobs) List(
	ctx context.Context, prefix, after string, limit int,
) (page []store.BlobInfo, err error) {
	err = b.with(ctx, func(c *client) (err error) {
		page, err = c.List(ctx, prefix, after, limit)
		return err
	})
	return page, err
}

// blobWriter passes errors on as those of its place.
type blobWriter struct {
	store.BlobWriter
	place  *place
	client *client
	ctx    context.Context // of Create, which lasts until the end
}

func (w *blobWriter) Write(p []byte) (int, error) {
	n, err := w.BlobWriter.Write(p)
	return n, w.place.note(w.ctx, w.client, err)
}

func (w *blobWriter) Commit(ctx context.Context) error {
	return w.place.note(ctx, w.client, w.BlobWriter.Commit(ctx))
}

// blob passes errors on as those of its place.
type blob struct {
	store.Blob
	place  *place
	client *client
	ctx    context.Context // of Open, which lasts until the end
}

func (b *blob) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.Blob.ReadAt(p, off)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, b.place.note(b.ctx, b.client, err)
}
