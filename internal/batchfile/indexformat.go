package batchfile

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// An index is a header, one record for each line, two tables of names, and a trailer with the
// length of each. Numbers are little-endian. Each record has its own checksum, so that a part of
// the index can be verified alone. The trailer comes last, so that an index that was cut has none.
const (
	indexHeader  = "TFLINES\x02"
	indexTrailer = "TFLINEND"

	// Indexes of the first version have no checksums of lines. They are read, not written.
	indexHeader1 = "TFLINES\x01"

	recordSize  = 64
	record1Size = 56
	// number of lines, length of the tables, checksum of the tables, checksum of the trailer
	trailerSize = 8 + 8 + 4 + 4 + len(indexTrailer)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn is the error of an index that was not completely written, or was damaged later.
var errTorn = fmt.Errorf("line index is torn or %w; scan the batch file again", ErrDamaged)

func (l *Line) encode(record []byte) {
	_ = record[recordSize-1]
	le := binary.LittleEndian
	le.PutUint64(record[0:], uint64(l.Offset))
	le.PutUint64(record[8:], l.PrefixHash)
	le.PutUint32(record[16:], l.Row)
	le.PutUint32(record[20:], l.Length)
	le.PutUint32(record[24:], l.BodyOffset)
	le.PutUint32(record[28:], l.BodyLength)
	le.PutUint32(record[32:], l.IDOffset)
	le.PutUint32(record[36:], l.IDLength)
	le.PutUint32(record[40:], l.MaxTokens)
	le.PutUint32(record[44:], l.PromptBytes)
	le.PutUint16(record[48:], l.Model)
	le.PutUint16(record[50:], l.URL)
	le.PutUint32(record[52:], l.Checksums.Object)
	le.PutUint32(record[56:], l.Checksums.ID)
	le.PutUint32(record[60:], crc32.Checksum(record[:60], castagnoli))
}

func (l *Line) decode(record []byte, number uint32) error {
	le, fields := binary.LittleEndian, len(record)-4
	if le.Uint32(record[fields:]) != crc32.Checksum(record[:fields], castagnoli) {
		return fmt.Errorf("record %d: %w", number, errTorn)
	}
	*l = Line{
		Number:      number,
		Offset:      int64(le.Uint64(record[0:])),
		PrefixHash:  le.Uint64(record[8:]),
		Row:         le.Uint32(record[16:]),
		Length:      le.Uint32(record[20:]),
		BodyOffset:  le.Uint32(record[24:]),
		BodyLength:  le.Uint32(record[28:]),
		IDOffset:    le.Uint32(record[32:]),
		IDLength:    le.Uint32(record[36:]),
		MaxTokens:   le.Uint32(record[40:]),
		PromptBytes: le.Uint32(record[44:]),
		Model:       le.Uint16(record[48:]),
		URL:         le.Uint16(record[50:]),
		NoChecksums: len(record) == record1Size,
	}
	if !l.NoChecksums {
		l.Checksums = Checksums{Object: le.Uint32(record[52:]), ID: le.Uint32(record[56:])}
	}
	return nil
}

// indexWriter writes an index from front to back. After an error every call returns it, as with
// bufio.Writer.
type indexWriter struct {
	w      *bufio.Writer
	lines  uint32
	record [recordSize]byte
}

func newIndexWriter(w io.Writer) *indexWriter {
	x := &indexWriter{w: bufio.NewWriterSize(w, 64<<10)}
	x.w.WriteString(indexHeader)
	return x
}

func (x *indexWriter) append(l *Line) error {
	l.encode(x.record[:])
	x.lines++
	_, err := x.w.Write(x.record[:])
	return err
}

func (x *indexWriter) finish(models, urls []string) error {
	tables := appendTable(appendTable(nil, models), urls)
	x.w.Write(tables)

	le := binary.LittleEndian
	trailer := le.AppendUint64(nil, uint64(x.lines))
	trailer = le.AppendUint64(trailer, uint64(len(tables)))
	trailer = le.AppendUint32(trailer, crc32.Checksum(tables, castagnoli))
	trailer = le.AppendUint32(trailer, crc32.Checksum(trailer, castagnoli))
	trailer = append(trailer, indexTrailer...)
	x.w.Write(trailer)
	return x.w.Flush()
}

func appendTable(dst []byte, names []string) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(names)))
	for _, name := range names {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(name)))
		dst = append(dst, name...)
	}
	return dst
}

// cutTable reads the table at the front of b.
func cutTable(b []byte) (names []string, rest []byte, ok bool) {
	number, b, ok := cutUint32(b)
	for ; ok && number > 0; number-- {
		var size uint32
		if size, b, ok = cutUint32(b); !ok || uint64(size) > uint64(len(b)) {
			return nil, nil, false
		}
		names, b = append(names, string(b[:size])), b[size:]
	}
	return names, b, ok
}

func cutUint32(b []byte) (uint32, []byte, bool) {
	if len(b) < 4 {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint32(b), b[4:], true
}
