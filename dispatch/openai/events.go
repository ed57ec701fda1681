package openai

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// events reads server-sent events. It ignores all fields but data, which contains everything.
type events struct {
	in     *bufio.Reader
	memory *streamMemory
	held   int // of memory, by the buffers
	data   []byte
	// afterCR: a carriage return ended the last row; a line feed that follows belongs to it
	afterCR bool
	begun   bool
	cut     bool // the stream ended before the blank row of the last event
}

func newEvents(from io.Reader, memory *streamMemory) *events {
	return &events{in: bufio.NewReaderSize(from, 4<<10), memory: memory}
}

// next returns the data of the next event, which is valid until the next call. The last event needs
// no blank row after it.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	begun := false
	for {
		row, err := e.row()
		if err != nil && (err != io.EOF || len(row) == 0) {
			if err == io.EOF && begun {
				e.cut = true
				return e.data, nil
			}
			return nil, err
		}
		if len(row) == 0 {
			if begun {
				return e.data, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(row, []byte(":"))
		if string(name) != "data" {
			continue
		}
		if begun {
			e.data = append(e.data, '\n')
		}
		begun = true
		e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		if int64(len(e.data)) > e.memory.limit {
			return nil, fmt.Errorf("%w: an event over %d bytes", errTooLarge, e.memory.limit)
		}
		if err := e.hold(cap(e.data)); err != nil {
			return nil, err
		}
	}
}

// row reads up to the next line feed, carriage return or both. It does not wait for what follows a
// carriage return.
func (e *events) row() ([]byte, error) {
	var row []byte // nil while all of it is in the reader's buffer
	for {
		if _, err := e.in.Peek(1); err != nil {
			return row, err
		}
		here, _ := e.in.Peek(e.in.Buffered())
		if e.afterCR {
			e.afterCR = false
			if here[0] == '\n' {
				e.in.Discard(1)
				continue
			}
		}
		end := rowEnd(here)
		if end < 0 {
			row = append(row, here...)
			e.in.Discard(len(here))
			if err := e.checkRow(row); err != nil {
				return nil, err
			}
			if err := e.hold(cap(row) + cap(e.data)); err != nil {
				return nil, err
			}
			continue
		}
		e.afterCR = here[end] == '\r'
		if row == nil {
			row = here[:end]
		} else {
			row = append(row, here[:end]...)
		}
		e.in.Discard(end + 1) // the bytes stay in the buffer until the next read
		if err := e.checkRow(row); err != nil {
			return nil, err
		}
		if !e.begun {
			e.begun = true
			row = bytes.TrimPrefix(row, []byte("\uFEFF"))
		}
		return row, nil
	}
}

// rowEnd returns the position of the first line feed or carriage return; -1: there is none.
func rowEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		b = b[:end]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return end
}

// checkRow refuses a row that is too long. The limit includes space for the field's name.
func (e *events) checkRow(row []byte) error {
	if int64(len(row)) > e.memory.limit+64 {
		return fmt.Errorf("%w: a row of an event over %d bytes", errTooLarge, e.memory.limit)
	}
	return nil
}

// hold takes memory for buffers of that size together.
func (e *events) hold(bytes int) error {
	if bytes <= e.held {
		return nil
	}
	more := bytes - e.held
	e.held = bytes
	return e.memory.add(int64(more))
}
