package s3

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/segments"
)

var _ segments.Objects = (*Bucket)(nil)

// Put implements [segments.Objects].
func (b *Bucket) Put(
	ctx context.Context, name string, size int64, content func() io.Reader,
) error {
	if err := b.putObject(ctx, name, size, content); err != nil {
		return fmt.Errorf("write segment %s: %w", name, err)
	}
	return nil
}

func (b *Bucket) putObject(
	ctx context.Context, name string, size int64, content func() io.Reader,
) error {
	if size <= int64(b.cfg.PartBytes) {
		body := make([]byte, size)
		if _, err := io.ReadFull(content(), body); err != nil {
			return err
		}
		return b.put(ctx, b.segmentKey(name), body, false)
	}
	w := &writer{bucket: b, ctx: ctx, key: b.segmentKey(name)}
	defer w.abort()
	n, err := io.Copy(w, content())
	if err == nil && n != size {
		err = fmt.Errorf("got %d bytes, want %d", n, size)
	}
	if err == nil {
		err = w.commit(ctx)
	}
	return err
}

// ReadAt implements [segments.Objects].
func (b *Bucket) ReadAt(ctx context.Context, name string, p []byte, offset int64) error {
	if len(p) == 0 {
		return nil
	}
	g, err := b.getInto(ctx, p, b.segmentKey(name), "", offset, int64(len(p)))
	if err == nil && len(g.body) < len(p) {
		err = fmt.Errorf("%w: the object is shorter than %d bytes", store.ErrNotFound,
			offset+int64(len(p)))
	}
	if err != nil {
		return fmt.Errorf("read segment %s: %w", name, err)
	}
	return nil
}

// maxAtOnce is the number of objects that S3 lists or deletes with one request.
const maxAtOnce = 1000

// Delete implements [segments.Objects].
func (b *Bucket) Delete(ctx context.Context, names ...string) error {
	for some := range slices.Chunk(names, maxAtOnce) {
		keys := make([]string, len(some))
		for i, name := range some {
			keys[i] = b.segmentKey(name)
		}
		if err := b.remove(ctx, keys); err != nil {
			return fmt.Errorf("delete segments: %w", err)
		}
	}
	return nil
}

// List implements [segments.Objects].
func (b *Bucket) List(ctx context.Context, after string, limit int) ([]string, error) {
	prefix := b.segmentKey("")
	if after != "" {
		after = prefix + after
	}
	var names []string
	for len(names) < limit {
		n := min(limit-len(names), maxAtOnce)
		page, err := b.listPage(ctx, prefix, after, n)
		if err != nil {
			return nil, fmt.Errorf("list segments: %w", err)
		}
		for _, o := range page {
			names = append(names, strings.TrimPrefix(o.Key, prefix))
		}
		if len(page) < n {
			break
		}
		after = page[n-1].Key
	}
	return names, nil
}
