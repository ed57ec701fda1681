package copying

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/store"
)

const (
	// parallelBlobs are copied at the same time, since an object storage takes long for each.
	parallelBlobs = 8
	// bufferSize is the size of the part of a blob that is read at once.
	bufferSize = 1 << 20
)

// copyBlobs copies all bytes that records refer to.
func (c *copier) copyBlobs(ctx context.Context) error {
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(parallelBlobs)
	err := c.eachBlob(ctx, func(key string, needed bool) error {
		group.Go(func() error { return c.copyBlob(working, key, needed) })
		return working.Err()
	})
	return errors.Join(group.Wait(), unlessCanceled(err))
}

// unlessCanceled drops the error that says that another one ended the work.
func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// eachBlob calls each for every blob that the source refers to.
func (c *copier) eachBlob(ctx context.Context, each func(key string, needed bool) error) error {
	seen := map[string]bool{} // those of batches that have not ended
	err := eachReference(ctx, c.from.Backend, func(r Reference) error {
		if r.Storage != nil {
			c.leave(r)
			return nil
		}
		if seen[r.Key] {
			return nil
		}
		if r.Kind == batchReference {
			seen[r.Key] = true
		}
		return each(r.Key, r.Needed)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", c.from.Name, err)
	}
	return nil
}

// copyBlob makes a blob of the target equal to that of the source.
func (c *copier) copyBlob(ctx context.Context, key string, needed bool) error {
	size, err := sizeOf(ctx, c.from.Backend.Blobs, key)
	if errors.Is(err, store.ErrNotFound) {
		c.miss(key, needed)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.from.Name, err)
	}
	exists, equal, err := c.inspect(ctx, key, size)
	if err != nil {
		return err
	}
	if !equal {
		if err := c.writeBlob(ctx, key); err != nil {
			return err
		}
	}
	c.report.update(func(s *Summary) {
		s.Blobs.Total++
		s.Blobs.Bytes += size
		if equal {
			return
		}
		s.Blobs.Written++
		if exists {
			s.Replaced++
		}
	})
	return nil
}

// leave counts a blob that stays in the storage of a profile.
func (c *copier) leave(r Reference) {
	c.report.update(func(s *Summary) {
		s.Elsewhere++
		s.ElsewhereBytes += r.Bytes
	})
}

// miss counts a blob that the source does not have.
func (c *copier) miss(key string, needed bool) {
	if !needed {
		return
	}
	c.report.update(func(s *Summary) {
		if s.MissingBlobs++; len(s.Missing) < maxMissing {
			s.Missing = append(s.Missing, key)
		}
	})
}

func sizeOf(ctx context.Context, blobs store.Blobs, key string) (int64, error) {
	blob, err := blobs.Open(ctx, key)
	if err != nil {
		return 0, err
	}
	return blob.Size(), blob.Close()
}

// inspect reports whether the target has a blob of the size, and whether it has the bytes of the
// source. One that can't be read, such as one that does not have its checksum any more, is not
// equal, and is written again, which fails if the target can't be reached.
func (c *copier) inspect(ctx context.Context, key string, size int64) (exists, equal bool,
	err error) {
	has, err := sizeOf(ctx, c.to.Backend.Blobs, key)
	if errors.Is(err, store.ErrNotFound) || err == nil && has != size {
		return false, false, nil
	}
	if err != nil {
		return true, false, ctx.Err()
	}
	target, err := digest(ctx, c.to.Backend.Blobs, key, io.Discard)
	if err != nil {
		return true, false, ctx.Err()
	}
	source, err := digest(ctx, c.from.Backend.Blobs, key, io.Discard)
	if err != nil {
		return true, false, fmt.Errorf("%s: %w", c.from.Name, err)
	}
	return true, bytes.Equal(source, target), nil
}

// writeBlob copies a blob and reads it back.
func (c *copier) writeBlob(ctx context.Context, key string) error {
	w, err := c.to.Backend.Blobs.Create(ctx, key)
	if err != nil {
		return fmt.Errorf("%s: %w", c.to.Name, err)
	}
	defer w.Abort()
	sent, err := digest(ctx, c.from.Backend.Blobs, key, w)
	if err != nil {
		return fmt.Errorf("copy from %s to %s: %w", c.from.Name, c.to.Name, err)
	}
	if err := w.Commit(ctx); err != nil {
		return fmt.Errorf("%s: %w", c.to.Name, err)
	}
	stored, err := digest(ctx, c.to.Backend.Blobs, key, io.Discard)
	if err != nil {
		return fmt.Errorf("%s: %w", c.to.Name, err)
	}
	if !bytes.Equal(stored, sent) {
		return fmt.Errorf("%s: blob %s has the SHA-256 %x, and %x was written; check the medium, "+
			"and copy again", c.to.Name, key, stored, sent)
	}
	return nil
}

// digest returns the SHA-256 of a blob, and writes its bytes to w.
func digest(
	ctx context.Context, blobs store.Blobs, key string, w io.Writer,
) ([]byte, error) {
	blob, err := blobs.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	sum := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(sum, w)}, struct{ io.Reader }{
		io.NewSectionReader(blob, 0, blob.Size())}, make([]byte, bufferSize))
	if err != nil {
		return nil, fmt.Errorf("read blob %s: %w", key, err)
	}
	return sum.Sum(nil), nil
}

// checkMissing refuses to complete a copy without bytes that the source should have.
func (c *copier) checkMissing(context.Context) error {
	s := c.report.current()
	if s.MissingBlobs == 0 || c.opts.AllowMissing {
		return nil
	}
	return fmt.Errorf("%s: the bytes of %d blobs are missing, such as %s: restore them from a "+
		"backup and copy again, or complete the copy without them by --allow-missing",
		c.from.Name, s.MissingBlobs, s.Missing[0])
}
