package s3

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// smallBuffer is the size up to which buffers do not count against the limit of all writers.
	smallBuffer = 1 << 20
	// abortLimit bounds the removal of the parts of an aborted object.
	abortLimit = time.Minute
)

// blobWriter implements [store.BlobWriter].
type blobWriter struct {
	key string // as callers know it
	*writer
}

func (w *blobWriter) Write(p []byte) (int, error) {
	n, err := w.writer.Write(p)
	if err != nil {
		return n, fmt.Errorf("write blob %s: %w", w.key, err)
	}
	return n, nil
}

func (w *blobWriter) Commit(ctx context.Context) error {
	if err := w.commit(ctx); err != nil {
		w.abort()
		return fmt.Errorf("commit blob %s: %w", w.key, err)
	}
	return nil
}

// Abort implements [store.BlobWriter]. The parts are removed in the background.
func (w *blobWriter) Abort() error {
	w.abort()
	return nil
}

// writer writes one object. It holds the context of Create, which covers its writes.
type writer struct {
	bucket *Bucket
	ctx    context.Context
	key    string

	buf    []byte
	taken  int64   // of the bucket's room for writers
	upload *upload // nil: everything is in buf
	err    error   // of an earlier write, so that an object with a gap can't be committed
	done   bool
}

func (w *writer) Write(p []byte) (n int, err error) {
	if w.done {
		return 0, os.ErrClosed
	}
	for n < len(p) && w.err == nil {
		if len(w.buf) == w.bucket.cfg.PartBytes {
			if w.err = w.flush(w.ctx); w.err != nil {
				break
			}
		}
		add := min(len(p)-n, w.bucket.cfg.PartBytes-len(w.buf))
		if w.err = w.grow(len(w.buf) + add); w.err != nil {
			break
		}
		w.buf = append(w.buf, p[n:n+add]...)
		n += add
	}
	return n, w.err
}

// grow makes the buffer large enough for n bytes.
func (w *writer) grow(n int) error {
	if n <= cap(w.buf) {
		return nil
	}
	size := w.bucket.cfg.PartBytes
	if n <= smallBuffer {
		size = min(smallBuffer, max(n, 2*cap(w.buf), 16<<10))
	} else if err := w.bucket.writing.take(w.ctx, int64(size)); err != nil {
		return err
	} else {
		w.taken = int64(size)
	}
	larger := make([]byte, len(w.buf), size)
	copy(larger, w.buf)
	w.buf = larger
	return nil
}

// flush writes the buffer as a part.
func (w *writer) flush(ctx context.Context) (err error) {
	if w.upload == nil {
		if w.upload, err = w.bucket.createUpload(ctx, w.key); err != nil {
			w.upload = nil
			return err
		}
	}
	if err := w.bucket.putPart(ctx, w.upload, w.buf); err != nil {
		return err
	}
	w.buf = w.buf[:0]
	return nil
}

// commit makes the object appear.
func (w *writer) commit(ctx context.Context) error {
	switch {
	case w.done:
		return os.ErrClosed
	case w.err != nil:
		return w.err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if w.upload == nil {
		if err := w.bucket.put(ctx, w.key, w.buf, false); err != nil {
			return err
		}
	} else {
		if len(w.buf) > 0 {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
		if err := w.bucket.completeUpload(ctx, w.upload); err != nil {
			return err
		}
	}
	w.finish()
	return nil
}

// abort drops the bytes. After commit it does nothing.
func (w *writer) abort() {
	if w.done {
		return
	}
	w.finish()
	if u := w.upload; u != nil {
		b := w.bucket
		b.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), abortLimit)
			defer cancel()
			if err := b.abortUpload(ctx, u.key, u.id); err != nil {
				b.opts.Logger.Warn("could not remove the parts of an aborted object; they are "+
					"removed when they are old", "object", u.key, "error", err)
			}
		})
	}
}

func (w *writer) finish() {
	w.done = true
	w.buf = nil
	w.bucket.writing.free(w.taken)
	w.taken = 0
}
