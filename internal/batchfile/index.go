package batchfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// Index gives random access to the lines of a file. It reads only the requested records. It may be
// used by several goroutines if its reader may.
type Index struct {
	r            io.ReaderAt
	lines        int
	record       int // bytes of a record
	models, urls []string
}

// OpenIndex opens an index of size bytes. It fails if the index was cut or its header, tables or
// trailer are damaged; a damaged record is an error when it is read.
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

// Len returns the number of lines.
func (x *Index) Len() int { return x.lines }

// Models returns the names of models by Line.Model. The caller must not change them.
func (x *Index) Models() []string { return x.models }

// URLs returns the URLs by Line.URL. The caller must not change them.
func (x *Index) URLs() []string { return x.urls }

// Read fills into with the lines from first on and returns their number, which is less than the
// length of into only at the end. At the end it returns io.EOF.
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

// Check reads all records and returns ErrDamaged if one of them is damaged.
func (x *Index) Check() error {
	window := make([]Line, 1024)
	for first := 0; first < x.lines; first += len(window) {
		if _, err := x.Read(first, window); err != nil {
			return err
		}
	}
	return nil
}
