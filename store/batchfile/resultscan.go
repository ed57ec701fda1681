package batchfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ScanResults reads an output or error file, whose lines may have any length, and calls fn with each custom_id and the
// number of its line from 1. It checks that each line is a JSON object with a custom_id, and stops at the first error.
// It holds no line that is longer than 64 KiB.
func ScanResults(r io.Reader, fn func(customID string, line int64) error) error {
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

// resultLine is one line of an output or error file.
type resultLine interface {
	blank() bool
	id() (string, error)
}

var (
	errNoObject   = errors.New("not a JSON object")
	errNoCustomID = errors.New("no custom_id")
	errLongID     = fmt.Errorf("the custom_id has more than %d bytes", maxCustomID)
)

// heldResult is a line that is held whole.
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
			if m.at, err = skipValue(line, start, answerDepth); err == nil && lineField(key.of(line)) == fieldCustomID {
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

// longResult is a line that streams by, of which the custom_id is kept.
type longResult struct {
	json    jsonStream
	object  bool
	empty   bool
	literal []byte
	taking  bool
	piece   []byte
	base    int
	from    int // the next byte of the literal, in the piece
}

func newLongResult() *longResult {
	l := new(longResult)
	l.json = newJSONStream(l, answerDepth+1)
	return l
}

// read reads a line to its end, whose first bytes are piece. io.EOF comes with the end of the last line.
func (l *longResult) read(in *bufio.Reader, piece []byte) error {
	*l = longResult{json: l.json, empty: true, literal: l.literal[:0]}
	l.json.reset()
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
	l.piece, l.from = p, 0
	l.json.write(p)
	l.take(len(p))
	l.base += len(p)
}

func (l *longResult) take(to int) {
	if l.taking {
		b := l.piece[l.from:to]
		l.literal = append(l.literal, b[:min(len(b), maxCustomID+len(`""`)+1-len(l.literal))]...)
	}
}

// begin implements streamEvents.
func (l *longResult) begin(depth int, key []byte, first byte, at int) {
	switch {
	case depth == 0:
		l.object = first == '{'
	case depth == 1 && key != nil && lineField(key) == fieldCustomID:
		l.literal, l.taking, l.from = l.literal[:0], true, at-l.base
	}
}

// end implements streamEvents.
func (l *longResult) end(depth int, at int) {
	if depth == 1 {
		l.take(at - l.base)
		l.taking = false
	}
}

func (l *longResult) blank() bool { return l.empty }

func (l *longResult) id() (string, error) {
	at, err := l.json.finish()
	switch {
	case !l.object:
		return "", errNoObject
	case err != nil:
		return "", fmt.Errorf("byte %d: %w", at+1, err)
	}
	return literalID(l.literal)
}
