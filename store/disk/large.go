package disk

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// largePiece is the number of bytes of a large record that are in memory at a time.
const largePiece = 64 << 10

// AppendFrom implements [store.Journal]. The caller's goroutine writes the record, outside of the
// group commit.
func (j *journal) AppendFrom(
	ctx context.Context, r store.Record, size int64, result func() io.Reader,
) error {
	if err := j.appendFrom(ctx, &r, size, result); err != nil {
		return j.wrap("append a large record to", err)
	}
	return nil
}

func (j *journal) appendFrom(
	ctx context.Context, r *store.Record, size int64, result func() io.Reader,
) error {
	if size > frame.MaxResult {
		return frame.ErrTooLarge
	}
	select {
	case j.commits.large <- struct{}{}:
		defer func() { <-j.commits.large }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := j.reserve.check(size); err != nil { // before a part of it is written
		return err
	}
	head, err := frame.HeaderOf(j.epoch, r, size, result())
	if err != nil {
		return err
	}

	j.io.Lock()
	defer j.io.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if err := j.writeLarge(head, io.LimitReader(result(), size)); err != nil {
		if errors.Is(err, store.ErrFenced) {
			j.end(store.ErrFenced)
			j.reportFenced()
		}
		return err
	}
	var one frame.Pending
	one.Count(r) // the result was not passed to Append
	j.committed(one.Sum)
	return nil
}

// usable returns the reason why nothing can be appended any more, if there is one. io is held.
func (j *journal) usable() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errJournalClosed
	}
	return j.final
}

// writeLarge writes a frame and makes it durable.
func (j *journal) writeLarge(head []byte, result io.Reader) error {
	written, sum, err := copyLarge(&pacedFile{file: j.file, reserve: j.reserve, written: j.size,
		started: j.size}, head, result, make([]byte, largePiece))
	if err == nil {
		err = j.file.Sync()
	}
	size, _ := frame.Size(head)
	if err == nil && (written != size || sum != frame.StoredChecksum(head)) {
		err = frame.ErrChanged
	}
	if err != nil {
		j.size += written
		return err
	}
	return j.check(written, 1)
}

// copyLarge writes a frame and returns how much of it was written, and the checksum of that.
func copyLarge(
	to io.Writer, head []byte, result io.Reader, buf []byte,
) (written int64, sum uint32, err error) {
	n, err := to.Write(head)
	if err != nil {
		return int64(n), 0, err
	}
	written, sum = int64(n), frame.Checksum(head)
	for {
		n, readErr := result.Read(buf)
		sum = frame.Update(sum, buf[:n])
		n, err := to.Write(buf[:n])
		written += int64(n)
		switch {
		case err != nil:
			return written, sum, err
		case readErr == io.EOF:
			return written, sum, nil
		case readErr != nil:
			return written, sum, fmt.Errorf("read the result: %w", readErr)
		}
	}
}
