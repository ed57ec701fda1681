package segments

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/store"
)

// ObjectsIn returns the blobs below a prefix as objects, for media on which a blob is opened
// without a request, such as a shared directory.
func ObjectsIn(blobs store.Blobs, prefix string) Objects { return &blobObjects{blobs, prefix} }

type blobObjects struct {
	blobs  store.Blobs
	prefix string
}

func (o *blobObjects) key(name string) string { return o.prefix + "/" + name }

func (o *blobObjects) Put(
	ctx context.Context, name string, size int64, content func() io.Reader,
) error {
	w, err := o.blobs.Create(ctx, o.key(name))
	if err != nil {
		return err
	}
	n, err := io.Copy(w, content())
	if err == nil && n != size {
		err = fmt.Errorf("write segment %s: got %d bytes, want %d", name, n, size)
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Commit(ctx)
}

func (o *blobObjects) ReadAt(ctx context.Context, name string, p []byte, offset int64) error {
	b, err := o.blobs.Open(ctx, o.key(name))
	if err != nil {
		return err
	}
	n, err := b.ReadAt(p, offset)
	if n == len(p) {
		err = nil
	} else if errors.Is(err, io.EOF) {
		err = fmt.Errorf("segment %s ends after %d bytes: %w", name, offset+int64(n),
			store.ErrNotFound)
	}
	return errors.Join(err, b.Close())
}

func (o *blobObjects) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := o.blobs.Delete(ctx, o.key(name)); err != nil {
			return err
		}
	}
	return nil
}

func (o *blobObjects) List(ctx context.Context, after string, limit int) ([]string, error) {
	if after != "" {
		after = o.key(after)
	}
	infos, err := o.blobs.List(ctx, o.prefix, after, limit)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Key[len(o.prefix)+1:]
	}
	return names, nil
}
