package disk

import (
	"context"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// largePiece is the number of bytes of a large record that are in memory at a time.
const largePiece = 64 << 10

// AppendFrom implements [store.Journal].
func (j *journal) AppendFrom(
	ctx context.Context, r store.Record, size int64, result func() io.Reader,
) error {
	err := j.reserve.check(size) // before a part of it is written
	if err == nil {
		err = j.Log.AppendFrom(ctx, j.commits.large, &r, size, result, func(head []byte) error {
			return j.writeLarge(head, io.LimitReader(result(), size))
		})
	}
	if err != nil {
		return j.Wrap("append a large record to", err)
	}
	return nil
}

// writeLarge writes a frame and makes it durable.
func (j *journal) writeLarge(head []byte, result io.Reader) error {
	j.io.Lock()
	defer j.io.Unlock()
	if err := j.Usable(); err != nil { // it may have been closed
		return err
	}
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

// copyLarge writes a frame and returns the size and the checksum of the part that was written.
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
