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

// An intake takes in the bytes of one blob and, for what may become a batch input, puts them
// through a scanner into the blob of its line index, in the same pass. Nothing of it is seen before
// commit.
type intake struct {
	references References
	blobs      Blobs

	key     string
	data    store.BlobWriter
	index   store.BlobWriter // nil: the file isn't scanned
	scanner *batchfile.Scanner
	sum     hash.Hash  // of all bytes; nil: nobody asked
	limits  []reserver // that bytes must fit into

	size    int64
	summary *batchfile.Summary // after finish, of a scanned file
}

// reserver grants room for bytes before they are kept.
type reserver interface {
	reserve(ctx context.Context, n int64) error
}

// newIntake starts a blob. The caller must abort it sooner or later; after a commit that does
// nothing.
func (s *Server) newIntake(
	ctx context.Context, key string, scan bool, sum hash.Hash, rooms ...reserver,
) (*intake, error) {
	in := &intake{references: s.meta, blobs: s.blobs, key: key, sum: sum, limits: rooms}
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
			MaxLines:     s.config.MaxBatchLines,
			MaxBytes:     s.config.MaxBatchFileBytes,
			MaxLineBytes: s.config.MaxLineBytes,
		})
	}
	return in, nil
}

// indexSuffix makes the key of a line index of the key of its file.
const indexSuffix = ".index"

func (in *intake) indexKey() string { return in.key + indexSuffix }

// errOverLimit says that a file has more bytes than it may have.
var errOverLimit = errors.New("over the limit")

// readError marks an error of the source, which is the client's, apart from those of the store.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// Buffers go round between the reader and the writer of an intake: two can wait for the disk while
// one is filled and scanned. 256 KiB make a system call worth its while and keep an upload below 1
// MiB.
const (
	bufferSize  = 256 << 10
	bufferCount = 3
)

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// copyFrom reads src to its end, of which at most limit bytes are taken in. The calling goroutine reads
// and scans; a second one writes the data, so that the disk and the scanner work at the same time.
// copyFrom may be called again to append.
func (in *intake) copyFrom(ctx context.Context, src io.Reader, limit int64) error {
	free := make(chan *[bufferSize]byte, bufferCount)
	taken := 0 // of the pool: one while the client is slower than the disk
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
			// the writer may return a buffer that is still being scanned below; nobody else takes
			// it before
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

// reserveAll asks all rooms for n bytes.
func (in *intake) reserveAll(ctx context.Context, n int64) error {
	for _, room := range in.limits {
		if err := room.reserve(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// process shows bytes to all that want to see them.
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

// fill reads until p is full or src has no more; io.EOF comes with the last bytes.
func fill(src io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var m int
		m, err = src.Read(p[n:])
		n += m
	}
	return n, err
}

// finish ends the scan. A file that turned out to be no batch input is kept without its index.
func (in *intake) finish(purpose string) error {
	if in.scanner == nil {
		return nil
	}
	if purpose != purposeBatch {
		err := in.index.Abort()
		in.index, in.scanner = nil, nil
		if err != nil {
			return fmt.Errorf("drop %s: %w", in.indexKey(), err)
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

// commit makes the blobs durable, both at once, or leaves none of them.
func (in *intake) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil { // nobody waits for it any more
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

// remove deletes what was committed, even if ctx is over, unless the row came to be although its
// creation reported an error.
func (in *intake) remove(ctx context.Context) error {
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	return store.RemoveBlobs(ctx, in.references, in.blobs, "", in.key, in.indexKey())
}

// abort drops what was not committed.
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
