package batchfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ScanResults reads an output or error file and calls fn with each custom_id and its row, from 1.
// Rows may have any length; no row longer than 64 KiB is held in memory. ScanResults checks that
// each row is a JSON object with a custom_id, and stops at the first error.
func ScanResults(r io.Reader, fn func(customID string, row int64) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	row := newResultRow()
	for number := int64(1); ; number++ {
		err := row.read(in)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read results: %w", err)
		}
		if !row.blank {
			id, faulty := row.id()
			if faulty != nil {
				return fmt.Errorf("results, line %d: %w", number, faulty)
			}
			if err := fn(id, number); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

var (
	errNoCustomID = errors.New("no custom_id")
	errLongID     = fmt.Errorf("the custom_id has more than %d bytes", maxCustomID)
)

// resultRow reads a row of an output or error file in pieces. Only its custom_id is kept.
type resultRow struct {
	object  objectReader
	blank   bool
	literal excerpt
}

func newResultRow() *resultRow {
	l := &resultRow{literal: excerpt{max: maxCustomID + len(`""`)}}
	l.object = newObjectReader(l, answerDepth+1, keyBytes)
	return l
}

// read reads the next row. At the end of the last row it returns io.EOF.
func (l *resultRow) read(in *bufio.Reader) error {
	l.object.reset()
	l.blank = true
	l.literal.reset()
	for {
		piece, err := in.ReadSlice('\n')
		l.blank = l.blank && isBlank(piece)
		l.object.write(piece)
		l.literal.nextPiece(piece)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// begin implements objectEvents.
func (l *resultRow) begin(depth int, key []byte, first byte, at int) {
	if depth == 1 && key != nil && lineField(key) == fieldCustomID {
		l.literal.begin(at - l.object.base)
	}
}

// end implements objectEvents.
func (l *resultRow) end(depth int, at int) {
	if depth == 1 && l.literal.open {
		l.literal.end(l.object.piece, at-l.object.base)
	}
}

func (l *resultRow) id() (string, error) {
	if at, err := l.object.finish(0); errors.Is(err, errNoObject) {
		return "", err
	} else if err != nil {
		return "", fmt.Errorf("byte %d: %w", at+1, err)
	}
	switch literal := l.literal.bytes; {
	case len(literal) == 0 || literal[0] != '"':
		return "", errNoCustomID
	case len(literal) > maxCustomID+len(`""`):
		return "", errLongID
	default:
		return CustomID(literal), nil
	}
}
