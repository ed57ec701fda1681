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
	in := bufio.NewReaderSize(r, heldBytes)
	var long *longResult
	for number := int64(1); ; number++ {
		line, err := in.ReadSlice('\n')
		read := resultLine(heldResult(line))
		if err == bufio.ErrBufferFull {
			if long == nil {
				long = newLongResult()
			}
			read, err = long, long.read(in, line)
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("read results: %w", err)
		}
		if !read.blank() {
			id, faulty := read.id()
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

// resultLine is one row of an output or error file.
type resultLine interface {
	blank() bool
	id() (string, error)
}

var (
	errNoCustomID = errors.New("no custom_id")
	errLongID     = fmt.Errorf("the custom_id has more than %d bytes", maxCustomID)
)

// heldResult is a row in memory.
type heldResult []byte

func (line heldResult) blank() bool { return skipSpace(line, 0) == len(line) }

func (line heldResult) id() (string, error) {
	i := skipSpace(line, 0)
	if line[i] != '{' {
		return "", errNoObject
	}
	var id span
	m := membersAt(line, i)
	for {
		key, more, err := m.next()
		if err == nil && more {
			start := m.at
			if m.at, err = skipValue(line, start, answerDepth); err == nil &&
				lineField(key.of(line)) == fieldCustomID {
				id = span{start, m.at}
			}
		}
		if err != nil {
			return "", fmt.Errorf("byte %d: %w", m.at+1, err)
		}
		if !more {
			break
		}
	}
	if i = skipSpace(line, m.at); i < len(line) {
		return "", fmt.Errorf("byte %d: %w", i+1, errTrailing)
	}
	return literalID(id.of(line))
}

func literalID(literal []byte) (string, error) {
	switch {
	case len(literal) == 0 || literal[0] != '"':
		return "", errNoCustomID
	case len(literal) > maxCustomID+len(`""`):
		return "", errLongID
	}
	return CustomID(literal), nil
}

// longResult is a row that arrives in pieces. Only its custom_id is kept.
type longResult struct {
	json    jsonStream
	empty   bool
	literal excerpt
}

func newLongResult() *longResult {
	l := &longResult{literal: excerpt{max: maxCustomID + len(`""`)}}
	l.json = newJSONStream(l, answerDepth+1, keyBytes)
	l.json.wantObject = true
	return l
}

// read reads a row, whose first bytes are piece, to its end. At the end of the last row it returns
// io.EOF.
func (l *longResult) read(in *bufio.Reader, piece []byte) error {
	l.json.reset()
	l.empty = true
	l.literal.reset()
	for {
		l.write(piece)
		var err error
		if piece, err = in.ReadSlice('\n'); err != bufio.ErrBufferFull {
			l.write(piece)
			return err
		}
	}
}

func (l *longResult) write(p []byte) {
	l.empty = l.empty && skipSpace(p, 0) == len(p)
	l.json.write(p)
	l.literal.nextPiece(p)
}

// begin implements streamEvents.
func (l *longResult) begin(depth int, key []byte, first byte, at int) {
	if depth == 1 && key != nil && lineField(key) == fieldCustomID {
		l.literal.begin(at - l.json.at)
	}
}

// end implements streamEvents.
func (l *longResult) end(depth int, at int) {
	if depth == 1 && l.literal.open {
		l.literal.end(l.json.piece, at-l.json.at)
	}
}

func (l *longResult) blank() bool { return l.empty }

func (l *longResult) id() (string, error) {
	if at, err := l.json.finish(); err == errNoObject {
		return "", err
	} else if err != nil {
		return "", fmt.Errorf("byte %d: %w", at+1, err)
	}
	return literalID(l.literal.bytes)
}
