package api

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// intake writes the bytes of a file to a blob. For a batch input file, it scans them in the same
// pass and writes a line index to a second blob. Neither blob is visible before commit.
type intake struct {
	references References
	blobs      Blobs

	key     string
	data    store.BlobWriter
	index   store.BlobWriter // nil: the file is not scanned
	scanner *batchfile.Scanner
	sum     hash.Hash  // of all bytes; nil: not needed
	limits  []reserver // that the bytes count against

	size    int64
	summary *batchfile.Summary // after finish, of a scanned file
}

// reserver checks a limit on bytes before they are stored.
type reserver interface {
	reserve(ctx context.Context, n int64) error
}

// newIntake starts a blob. The caller must call abort in the end; after commit it does nothing.
func (s *Server) newIntake(
	ctx context.Context, key string, scan bool, sum hash.Hash, limits ...reserver,
) (*intake, error) {
	in := &intake{references: s.meta, blobs: s.blobs, key: key, sum: sum, limits: limits}
	var err error
	if in.data, err = s.blobs.Create(ctx, key); err != nil {
		return nil, fmt.Errorf("store %s: %w", key, err)
	}
	if scan {
		if in.index, err = s.blobs.Create(ctx, in.indexKey()); err != nil {
			in.abort()
			return nil, fmt.Errorf("store %s: %w", in.indexKey(), err)
		}
		in.scanner = batchfile.NewScanner(in.index, batchfile.Limits{
			MaxLines:     s.config().MaxBatchLines,
			MaxBytes:     s.config().MaxBatchFileBytes,
			MaxLineBytes: s.config().MaxLineBytes,
		})
	}
	return in, nil
}

// indexSuffix is added to the key of a file for the key of its line index.
const indexSuffix = ".index"

func (in *intake) indexKey() string { return in.key + indexSuffix }

// errOverLimit means that a file has too many bytes.
var errOverLimit = errors.New("over the limit")

// readError marks an error of reading the source, as opposed to one of the store.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// The reader and the writer of an intake share three buffers: two can wait for the disk while one
// is filled and scanned. 256 KiB make system calls rare and keep an upload below 1 MiB of memory.
const (
	bufferSize  = 256 << 10
	bufferCount = 3
)

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// copyFrom copies src to the blob, up to limit bytes; beyond that it returns errOverLimit. The
// calling goroutine reads and scans while a second one writes. copyFrom may be called again to
// append.
func (in *intake) copyFrom(ctx context.Context, src io.Reader, limit int64) error {
	free := make(chan *[bufferSize]byte, bufferCount)
	taken := 0 // buffers from the pool; one is enough if the client is slower than the disk
	next := func() *[bufferSize]byte {
		select {
		case buffer := <-free:
			return buffer
		default:
		}
		if taken == bufferCount {
			return <-free
		}
		taken++
		return buffers.Get().(*[bufferSize]byte)
	}
	defer func() {
		for range taken {
			buffers.Put(<-free)
		}
	}()

	type filled struct {
		buffer *[bufferSize]byte
		n      int
	}
	full := make(chan filled, bufferCount)
	failed := make(chan error, 1)
	var writer sync.WaitGroup
	writer.Go(func() {
		var err error
		for f := range full {
			if err == nil {
				if _, err = in.data.Write(f.buffer[:f.n]); err != nil {
					failed <- fmt.Errorf("store %s: %w", in.key, err)
				}
			}
			free <- f.buffer
		}
	})

	var size int64
	err := func() error {
		defer writer.Wait()
		defer close(full)
		for {
			// The writer may return a buffer that is still being scanned below. That is safe: only
			// this loop takes buffers.
			buffer := next()
			n, readErr := fill(src, buffer[:])
			size += int64(n)
			roomErr := in.reserveAll(ctx, int64(n))
			full <- filled{buffer, n}
			switch {
			case roomErr != nil:
				return roomErr
			case size > limit:
				return errOverLimit
			case readErr != nil && readErr != io.EOF:
				return readError{readErr}
			}
			if err := in.process(buffer[:n]); err != nil {
				return err
			}
			if readErr == io.EOF {
				return nil
			}
			select {
			case err := <-failed:
				return err
			default:
			}
		}
	}()
	in.size += size
	select {
	case writeErr := <-failed:
		return writeErr
	default:
		return err
	}
}

// reserveAll counts n bytes against all limits.
func (in *intake) reserveAll(ctx context.Context, n int64) error {
	for _, limit := range in.limits {
		if err := limit.reserve(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// process hashes and scans bytes, as far as that is wanted.
func (in *intake) process(p []byte) error {
	if in.sum != nil {
		in.sum.Write(p)
	}
	if in.scanner == nil {
		return nil
	}
	if _, err := in.scanner.Write(p); err != nil {
		return fmt.Errorf("scan %s: %w", in.key, err)
	}
	return nil
}

// fill reads until p is full or src ends. It returns io.EOF together with the last bytes.
func fill(src io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = src.Read(p[n:])
		n += m
	}
	return n, err
}

// finish ends the scan. A file that is not a batch input is stored without its index.
func (in *intake) finish(purpose string) error {
	if in.scanner == nil {
		return nil
	}
	if purpose != purposeBatch {
		err := in.index.Abort()
		in.index, in.scanner = nil, nil
		if err != nil {
			return fmt.Errorf("abort %s: %w", in.indexKey(), err)
		}
		return nil
	}
	summary, err := in.scanner.Finish()
	if err != nil {
		return fmt.Errorf("scan %s: %w", in.key, err)
	}
	in.summary = &summary
	return nil
}

// commit makes both blobs durable. After an error neither remains.
func (in *intake) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // the client has disconnected
		return fmt.Errorf("commit %s: %w", in.key, err)
	}
	var group errgroup.Group
	group.Go(func() error { return in.data.Commit(ctx) })
	if in.index != nil {
		group.Go(func() error { return in.index.Commit(ctx) })
	}
	if err := group.Wait(); err != nil {
		return errors.Join(fmt.Errorf("commit %s: %w", in.key, err), in.remove(ctx))
	}
	return nil
}

// remove deletes what was committed, even after the end of ctx. It keeps the blobs if the record
// exists although its creation has reported an error.
func (in *intake) remove(ctx context.Context) error {
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	return store.RemoveBlobs(ctx, in.references, in.blobs, "", in.key, in.indexKey())
}

// abort discards what was not committed.
func (in *intake) abort() error {
	var err error
	if in.data != nil {
		err = in.data.Abort()
	}
	if in.index != nil {
		err = errors.Join(err, in.index.Abort())
	}
	return err
}
