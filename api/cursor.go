package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
)

// cursor is the position up to which each chunk's journal has been read, by the chunk's index.
type cursor []int64

const (
	unread  int64 = 0
	drained int64 = -1 // the chunk has ended and all of its records were returned
	// Any other position is one byte beyond the start of the last record that was returned.
)

var errCursor = errors.New("not a cursor of this batch")

// encode returns the cursor as text: a checksum of the batch's id and a number for each chunk. A
// run of chunks that are all drained or all unread takes two numbers; nearly all chunks are in such
// runs.
func (c cursor) encode(batchID string) string {
	packed := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(batchID)))
	for i := 0; i < len(c); {
		packed = binary.AppendUvarint(packed, uint64(token(c[i])))
		run := 1
		if c[i] <= 0 {
			for i+run < len(c) && c[i+run] == c[i] {
				run++
			}
			packed = binary.AppendUvarint(packed, uint64(run))
		}
		i += run
	}
	return base64.RawURLEncoding.EncodeToString(packed)
}

func token(position int64) int64 {
	if position == drained {
		return 1
	}
	if position == unread {
		return 0
	}
	return position + 1
}

// decodeCursor parses the cursor of a batch with that many chunks. Chunks beyond the end of the
// cursor are unread.
func decodeCursor(text, batchID string, chunks int) (cursor, error) {
	c := make(cursor, 0, chunks)
	if text != "" {
		packed, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(packed) < 4 ||
			binary.BigEndian.Uint32(packed) != crc32.ChecksumIEEE([]byte(batchID)) {
			return nil, errCursor
		}
		if c, err = c.unpack(packed[4:], chunks); err != nil {
			return nil, err
		}
	}
	return append(c, make(cursor, chunks-len(c))...), nil
}

func (c cursor) unpack(packed []byte, chunks int) (cursor, error) {
	next := func() (uint64, bool) {
		n, size := binary.Uvarint(packed)
		if size <= 0 {
			return 0, false
		}
		packed = packed[size:]
		return n, true
	}
	for len(packed) > 0 {
		token, ok := next()
		if !ok || token > maxInt53 {
			return nil, errCursor
		}
		position, run := int64(token)-1, uint64(1)
		if token <= 1 {
			position = -int64(token)
			run, ok = next()
		}
		if !ok || run == 0 || run > uint64(chunks-len(c)) {
			return nil, errCursor
		}
		c = append(c, slices.Repeat(cursor{position}, int(run))...)
	}
	return c, nil
}
