package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/store"
)

// ErrChanged means that the second reader of a result had other bytes than the first one. The frame
// that was written is damaged.
var ErrChanged = errors.New("the result was different when it was read again")

// HeaderOf reads a result of the given length, and returns the header of its frame.
func HeaderOf(epoch int64, r *store.Record, size int64, result io.Reader) ([]byte, error) {
	head := AppendHeader(nil, Record, epoch, r, size)
	sum := Sum(Checksum(head))
	n, err := io.Copy(&sum, io.LimitReader(result, size))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("read the result: %d of %d bytes: %w", n, size, err)
	}
	binary.LittleEndian.PutUint32(head[8:], uint32(sum))
	return head, nil
}

// Sum is a checksum to which the bytes that are written are added.
type Sum uint32

// Write implements [io.Writer].
func (s *Sum) Write(p []byte) (int, error) {
	*s = Sum(Update(uint32(*s), p))
	return len(p), nil
}
