package disk

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
	prefixSize = 12
	headerSize = 60
	fenceSize  = prefixSize + headerSize

	// maxResult limits what a reader reads because of a flipped bit in a length.
	maxResult = 256 << 20

	frameVersion = 1
)

// magic starts every frame. UTF-8 text never has the byte 0xF5, so results do not contain it.
var magic = [4]byte{0xF5, 'T', 'j', '\n'}

type kind byte

const (
	recordFrame kind = 1
	fenceFrame  kind = 2
)

const failedFlag uint32 = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame is a decoded frame. The Result of its record is part of the reader's buffer.
type frame struct {
	kind   kind
	epoch  int64
	record store.Record
}

var errTooLarge = fmt.Errorf("result is larger than %d bytes", maxResult)

// appendFrame appends the encoded frame to b.
func appendFrame(b []byte, k kind, epoch int64, r *store.Record) []byte {
	start := len(b)
	b = appendHeader(b, k, epoch, r, resultSize(r))
	b = append(b, r.Result...)
	for _, more := range r.More {
		b = append(b, more...)
	}
	binary.LittleEndian.PutUint32(b[start+8:], checksum(b[start:]))
	return b
}

// resultSize returns the length of a record's result.
func resultSize(r *store.Record) int64 {
	n := int64(len(r.Result))
	for _, more := range r.More {
		n += int64(len(more))
	}
	return n
}

// appendHeader appends the header of a frame whose result has the given length. The checksum is
// left zero.
func appendHeader(b []byte, k kind, epoch int64, r *store.Record, result int64) []byte {
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

// checksum returns the checksum of a frame, or of its beginning. crc32.Update adds the rest.
func checksum(frame []byte) uint32 {
	return crc32.Update(crc32.Checksum(frame[4:8], castagnoli), castagnoli, frame[prefixSize:])
}

// frameSize returns the size of the frame that starts with prefix; ok is false if no frame starts
// so.
func frameSize(prefix []byte) (size int64, ok bool) {
	length := binary.LittleEndian.Uint32(prefix[4:])
	if [4]byte(prefix) != magic || length < headerSize || length > headerSize+maxResult {
		return 0, false
	}
	return prefixSize + int64(length), true
}

// storedChecksum returns the checksum that a frame contains.
func storedChecksum(frame []byte) uint32 { return binary.LittleEndian.Uint32(frame[8:]) }

var errUnknownFrame = errors.New("written by a later release: run that release, or a later one")

// decodeFrame decodes an intact frame, or the beginning of one without its result.
func decodeFrame(b []byte) (frame, error) {
	le := binary.LittleEndian
	f := frame{kind: kind(b[13]), epoch: int64(le.Uint64(b[24:]))}
	if b[12] != frameVersion || f.kind != recordFrame && f.kind != fenceFrame {
		return frame{}, errUnknownFrame
	}
	r := &f.record
	r.Attempts = le.Uint16(b[14:])
	r.Line = le.Uint32(b[16:])
	r.Failed = le.Uint32(b[20:])&failedFlag != 0
	for i, n := range [...]*int64{
		&r.Usage.InputTokens, &r.Usage.OutputTokens, &r.Usage.TotalTokens, &r.Usage.CachedTokens,
		&r.Usage.ReasoningTokens,
	} {
		*n = int64(le.Uint64(b[32+8*i:]))
	}
	r.Result = b[fenceSize:]
	return f, nil
}
