package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
)

// cursor says how far each chunk's journal has been read, by the chunk's index.
type cursor []int64

const (
	unread  int64 = 0
	drained int64 = -1 // the chunk is done and told whole
	// Any other position is one beyond the place of the last record told.
)

var errCursor = errors.New("no cursor of this batch")

// encode packs the cursor for the user, as a checksum of the batch's id and one number per chunk.
// Runs of chunks that are drained or unread, which is all but a few of them, take two numbers
// together.
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

// decodeCursor unpacks a cursor for a batch of so many chunks. Chunks that it doesn't name are
// unread.
func decodeCursor(text, batchID string, chunks int) (cursor, error) {
	c := make(cursor, 0, chunks)
	if text != "" {
		packed, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(packed) < 4 || binary.BigEndian.Uint32(packed) != crc32.ChecksumIEEE(
			[]byte(batchID)) {
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
