package batchfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Line is the index record of one request.
type Line struct {
	// among the request lines, from 0; this is "the line" everywhere outside this package
	Number uint32
	Row    uint32 // among all lines of the file, from 1; for messages

	Offset int64  // of the JSON object in the file
	Length uint32 // of the JSON object, without the newline

	// Relative to Offset.
	BodyOffset, BodyLength uint32 // the bytes of "body"
	IDOffset, IDLength     uint32 // the string literal of "custom_id", quotes included

	Model uint16 // position in Index.Models
	URL   uint16 // position in Index.URLs

	MaxTokens   uint32 // the bound on output tokens that the body gives; 0: none
	PromptBytes uint32 // of the fields the engine reads as input, without inline base64 data
	// of the first KiB of those fields: equal beginnings, equal hashes; 0: no matter here
	PrefixHash uint64

	Checksums   Checksums
	NoChecksums bool // the index was written by a release without checksums of lines
}

// Checksums are CRC-32C of a line's bytes, so that damage to the file is found before it is sent.
type Checksums struct {
	Object uint32
	ID     uint32 // of the literal of the custom_id
}

// ErrDamaged is what a batch file, or its line index, wraps when it holds other bytes than were
// written.
var ErrDamaged = errors.New("damaged on its medium")

// Check returns ErrDamaged if object is not what the line was when it was uploaded.
func (l Line) Check(object []byte) error {
	return l.compare(crc32.Checksum(object, castagnoli))
}

// CheckFile is Check for a line that is too long to be held: it reads the line from its batch file.
func (l Line) CheckFile(file io.ReaderAt) error {
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, io.NewSectionReader(file, l.Offset, int64(l.Length)))
	if err != nil {
		return fmt.Errorf("read line %d: %w", l.Row, err)
	}
	if n < int64(l.Length) {
		return fmt.Errorf("line %d of the input file is cut: %w", l.Row, ErrDamaged)
	}
	return l.compare(sum.Sum32())
}

func (l Line) compare(sum uint32) error {
	if l.NoChecksums || sum == l.Checksums.Object {
		return nil
	}
	return fmt.Errorf("line %d of the input file: %w", l.Row, ErrDamaged)
}

// VerifiedID returns the literal of a custom_id as it was read, or one that names the line if that is
// damaged or nil.
func (l Line) VerifiedID(literal []byte) []byte {
	if literal != nil && (l.NoChecksums || crc32.Checksum(literal, castagnoli) == l.Checksums.ID) {
		return literal
	}
	return appendQuoted(nil, fmt.Sprintf("damaged custom_id of line %d", l.Row))
}

// Body slices the request's body out of object, the Length bytes at Offset in the file.
func (l Line) Body(object []byte) []byte {
	return object[l.BodyOffset : l.BodyOffset+l.BodyLength]
}

// CustomID slices the string literal of the custom_id, quotes included, out of object.
func (l Line) CustomID(object []byte) []byte {
	return object[l.IDOffset : l.IDOffset+l.IDLength]
}

// ReadObject reads the line's JSON object from its batch file, into buf if it is large enough.
func (l Line) ReadObject(file io.ReaderAt, buf []byte) ([]byte, error) {
	if uint64(cap(buf)) < uint64(l.Length) {
		buf = make([]byte, l.Length)
	}
	buf = buf[:l.Length]
	if n, err := file.ReadAt(buf, l.Offset); n < len(buf) {
		return nil, fmt.Errorf("read line %d: %w", l.Row, err)
	}
	return buf, nil
}

// An index is a header, one record per line, the two tables of names, and a trailer that says how
// much of each there is. Numbers are little-endian. Each record carries its own checksum, so that a
// window can be trusted by itself; the trailer comes last, so that an index cut short has none.
const (
	indexHeader  = "TFLINES\x02"
	indexTrailer = "TFLINEND"

	// Indexes of the first version lack the sums of lines; they can be read, not written.
	indexHeader1 = "TFLINES\x01"

	recordSize  = 64
	record1Size = 56
	// lines, length of the tables, their checksum, the trailer's own
	trailerSize = 8 + 8 + 4 + 4 + len(indexTrailer)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn marks an index that was not written to its end, or was damaged since.
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

// indexWriter writes an index front to back. Its errors stick, as bufio's do.
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

// cutTable takes one table off the front of b.
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

// Index gives random access to the lines of a file, reading only the records asked for. It may be
// used by many goroutines if its reader may.
type Index struct {
	r            io.ReaderAt
	lines        int
	record       int // bytes of each
	models, urls []string
}

// OpenIndex opens an index of size bytes. An index that was cut short or damaged is an error;
// damage to a record shows when that record is read.
func OpenIndex(r io.ReaderAt, size int64) (*Index, error) {
	x, err := openIndex(r, size)
	if err != nil {
		return nil, fmt.Errorf("open line index: %w", err)
	}
	return x, nil
}

func openIndex(r io.ReaderAt, size int64) (*Index, error) {
	if size < int64(len(indexHeader)+trailerSize) {
		return nil, errTorn
	}
	var header [len(indexHeader)]byte
	if err := readAt(r, header[:], 0); err != nil {
		return nil, err
	}
	var trailer [trailerSize]byte
	if err := readAt(r, trailer[:], size-int64(trailerSize)); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	record := uint64(recordSize)
	if string(header[:]) == indexHeader1 {
		record = record1Size
	} else if string(header[:]) != indexHeader {
		return nil, errTorn
	}
	if string(trailer[24:]) != indexTrailer ||
		le.Uint32(trailer[20:]) != crc32.Checksum(trailer[:20], castagnoli) {
		return nil, errTorn
	}
	lines, tableSize := le.Uint64(trailer[0:]), le.Uint64(trailer[8:])
	between := uint64(size) - uint64(len(indexHeader)+trailerSize)
	if lines > between/record || between-lines*record != tableSize {
		return nil, errTorn
	}
	tables := make([]byte, tableSize)
	if err := readAt(r, tables, int64(uint64(len(indexHeader))+lines*record)); err != nil {
		return nil, err
	}
	if le.Uint32(trailer[16:]) != crc32.Checksum(tables, castagnoli) {
		return nil, errTorn
	}
	x := &Index{r: r, lines: int(lines), record: int(record)}
	var ok bool
	if x.models, tables, ok = cutTable(tables); !ok {
		return nil, errTorn
	}
	if x.urls, tables, ok = cutTable(tables); !ok || len(tables) > 0 {
		return nil, errTorn
	}
	return x, nil
}

func readAt(r io.ReaderAt, b []byte, at int64) error {
	if n, err := r.ReadAt(b, at); n < len(b) {
		return err
	}
	return nil
}

// Len is the number of lines.
func (x *Index) Len() int { return x.lines }

// Models returns the names that Line.Model counts into. The caller must not change them.
func (x *Index) Models() []string { return x.models }

// URLs returns the URLs that Line.URL counts into. The caller must not change them.
func (x *Index) URLs() []string { return x.urls }

// Read fills into with the lines from first on and returns how many there were: fewer than asked
// for only at the end. From the end on it returns io.EOF.
func (x *Index) Read(first int, into []Line) (int, error) {
	if first < 0 {
		return 0, fmt.Errorf("read line index: no record %d", first)
	}
	if first >= x.lines {
		return 0, io.EOF
	}
	n := min(len(into), x.lines-first)
	records := make([]byte, n*x.record)
	if err := readAt(x.r, records, int64(len(indexHeader))+int64(first)*int64(
		x.record)); err != nil {
		return 0, fmt.Errorf("read line index: %w", err)
	}
	for i := range n {
		if err := into[i].decode(records[i*x.record:][:x.record], uint32(first+i)); err != nil {
			return 0, fmt.Errorf("read line index: %w", err)
		}
	}
	return n, nil
}

// Check reads the whole index and returns ErrDamaged if a record is not what was written.
func (x *Index) Check() error {
	window := make([]Line, 1024)
	for first := 0; first < x.lines; first += len(window) {
		if _, err := x.Read(first, window); err != nil {
			return err
		}
	}
	return nil
}

// MismatchedLines returns a fault for each line, up to most, whose URL is not the batch's endpoint.
func MismatchedLines(x *Index, endpoint string, most int) ([]Fault, error) {
	if len(x.urls) == 0 || len(x.urls) == 1 && x.urls[0] == endpoint {
		return nil, nil
	}
	var faults []Fault
	window := make([]Line, 1024)
	for first := 0; len(faults) < most; {
		n, err := x.Read(first, window)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, line := range window[:n] {
			if int(line.URL) >= len(x.urls) {
				return nil, fmt.Errorf("record %d: %w", line.Number, errTorn)
			}
			if url := x.urls[line.URL]; url != endpoint && len(faults) < most {
				faults = append(faults, Fault{
					Code: CodeURLMismatch,
					Message: fmt.Sprintf("The url %q of this line is not the batch's endpoint %q; "+
						"give every line of a batch the batch's endpoint.", url, endpoint),
					Param: fieldURL.String(),
					Line:  int(line.Row),
				})
			}
		}
		first += n
	}
	return faults, nil
}
