package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/tidefill/tidefill/store"
)

// A frame, little endian:
//
//	0  magic     4
//	4  length    4  of what follows the checksum
//	8  checksum  4  CRC-32C of length and what follows the checksum
//	12 version   1
//	13 kind      1
//	14 attempts  2
//	16 line      4
//	20 flags     4
//	24 epoch     8
//	32 usage     5 × 8
//	72 result
const (
	// PrefixSize is how much of a frame Size needs.
	PrefixSize = 12
	headerSize = 60
	// EmptySize is the size of a frame without a result, and where the result begins.
	EmptySize = PrefixSize + headerSize

	// MaxResult limits what a reader reads because of a flipped bit in a length.
	MaxResult = 256 << 20

	frameVersion = 1
)

// magic starts every frame. UTF-8 text never has the byte 0xF5, so results do not contain it.
var magic = [4]byte{0xF5, 'T', 'j', '\n'}

// Kind distinguishes frames.
type Kind byte

const (
	// Record has the result of a line.
	Record Kind = 1
	// Fence has nothing but an epoch, below which later frames do not count.
	Fence Kind = 2
)

const failedFlag uint32 = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is a decoded frame. The Result of its record is part of the reader's buffer.
type Frame struct {
	Kind   Kind
	Epoch  int64
	Record store.Record
}

// ErrTooLarge means that no frame can hold the result.
var ErrTooLarge = fmt.Errorf("result is larger than %d bytes", MaxResult)

// Append appends the encoded frame to b.
func Append(b []byte, k Kind, epoch int64, r *store.Record) []byte {
	start := len(b)
	b = AppendHeader(b, k, epoch, r, ResultSize(r))
	b = append(b, r.Result...)
	for _, more := range r.More {
		b = append(b, more...)
	}
	binary.LittleEndian.PutUint32(b[start+8:], Checksum(b[start:]))
	return b
}

// ResultSize returns the length of a record's result.
func ResultSize(r *store.Record) int64 {
	n := int64(len(r.Result))
	for _, more := range r.More {
		n += int64(len(more))
	}
	return n
}

// AppendHeader appends the header of a frame whose result has the given length. The checksum is
// left zero.
func AppendHeader(b []byte, k Kind, epoch int64, r *store.Record, result int64) []byte {
	le := binary.LittleEndian
	b = append(b, magic[:]...)
	b = le.AppendUint32(b, uint32(headerSize+result))
	b = append(b, 0, 0, 0, 0, frameVersion, byte(k))
	b = le.AppendUint16(b, r.Attempts)
	b = le.AppendUint32(b, r.Line)
	var flags uint32
	if r.Failed {
		flags |= failedFlag
	}
	b = le.AppendUint32(b, flags)
	b = le.AppendUint64(b, uint64(epoch))
	for _, n := range [...]int64{
		r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.TotalTokens, r.Usage.CachedTokens,
		r.Usage.ReasoningTokens,
	} {
		b = le.AppendUint64(b, uint64(n))
	}
	return b
}

// Checksum returns the checksum of a frame, or of its beginning. Update adds the rest.
func Checksum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[4:8], castagnoli), castagnoli, frame[PrefixSize:])
}

// Update adds more bytes of a frame to a checksum.
func Update(sum uint32, more []byte) uint32 { return crc32.Update(sum, castagnoli, more) }

// Size returns the size of the frame that starts with prefix; ok is false if no frame starts
// so.
func Size(prefix []byte) (size int64, ok bool) {
	length := binary.LittleEndian.Uint32(prefix[4:])
	if [4]byte(prefix) != magic || length < headerSize || length > headerSize+MaxResult {
		return 0, false
	}
	return PrefixSize + int64(length), true
}

// StoredChecksum returns the checksum that a frame contains.
func StoredChecksum(frame []byte) uint32 { return binary.LittleEndian.Uint32(frame[8:]) }

var errUnknownFrame = errors.New("written by a later release: run that release, or a later one")

// decode decodes an intact frame, or the beginning of one without its result.
func decode(b []byte) (Frame, error) {
	le := binary.LittleEndian
	f := Frame{Kind: Kind(b[13]), Epoch: int64(le.Uint64(b[24:]))}
	if b[12] != frameVersion || f.Kind != Record && f.Kind != Fence {
		return Frame{}, errUnknownFrame
	}
	r := &f.Record
	r.Attempts = le.Uint16(b[14:])
	r.Line = le.Uint32(b[16:])
	r.Failed = le.Uint32(b[20:])&failedFlag != 0
	for i, n := range [...]*int64{
		&r.Usage.InputTokens, &r.Usage.OutputTokens, &r.Usage.TotalTokens, &r.Usage.CachedTokens,
		&r.Usage.ReasoningTokens,
	} {
		*n = int64(le.Uint64(b[32+8*i:]))
	}
	r.Result = b[EmptySize:]
	return f, nil
}
