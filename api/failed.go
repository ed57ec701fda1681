package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// failedLine is a line of an error file.
type failedLine struct {
	id    string
	input int // of the batch, if each has its own error file; -1: unknown
}

// failedLines reads the custom_ids from the error files of an ended batch. They are in the order of
// the input, so both can be read side by side without keeping ids in memory.
func (s *Server) failedLines(ctx context.Context, b store.Batch) iter.Seq2[failedLine, error] {
	return func(yield func(failedLine, error) bool) {
		for _, output := range b.Outputs {
			if !output.HasErrors {
				continue
			}
			err := s.scanErrorFile(ctx, b.Tenant, output.ErrorID, func(id string) bool {
				return yield(failedLine{id, output.Input}, nil)
			})
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield(failedLine{}, err)
				return
			}
		}
	}
}

// errStopped ends a scan early, when its reader needs no more.
var errStopped = errors.New("stopped")

func (s *Server) scanErrorFile(
	ctx context.Context, tenant, id string, yield func(customID string) bool,
) error {
	file, err := s.meta.File(ctx, tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return invalid("", "error_file_gone",
			"The error file %s was deleted, so the failed lines are unknown.", id)
	}
	if err != nil {
		return fmt.Errorf("look up error file %s: %w", id, err)
	}
	blobs, err := s.blobsOf(file)
	if err != nil {
		return err
	}
	blob, err := blobs.Open(ctx, file.BlobKey)
	if err != nil {
		return fmt.Errorf("open error file %s: %w", id, err)
	}
	defer blob.Close()
	err = batchfile.ScanResults(io.NewSectionReader(blob, 0, blob.Size()),
		func(customID string, _ int64) error {
			if !yield(customID) {
				return errStopped
			}
			return nil
		})
	if err != nil {
		return fmt.Errorf("read error file %s: %w", id, err)
	}
	return nil
}

// failedQueue reads failed lines one at a time.
type failedQueue struct {
	pull func() (failedLine, error, bool)
	stop func()

	next failedLine
	more bool  // next is valid
	err  error // why reading failed
}

func pullFailed(failed iter.Seq2[failedLine, error]) *failedQueue {
	q := new(failedQueue)
	q.pull, q.stop = iter.Pull2(failed)
	q.advance()
	return q
}

func (q *failedQueue) advance() {
	if q.next, q.err, q.more = q.pull(); q.err != nil {
		q.more = false
	}
}

// failedInInput is a failedQueue restricted to one input.
type failedInInput struct {
	*failedQueue
	input int
}

// has reports whether the next failed line may be in the input.
func (f failedInInput) has() bool { return f.more && (f.next.input < 0 || f.next.input == f.input) }

// takes reports whether the next failed line has the custom_id. If so, it advances to the one after
// it.
func (f failedInInput) takes(customID string) bool {
	if !f.has() || f.next.id != customID {
		return false
	}
	f.advance()
	return true
}
