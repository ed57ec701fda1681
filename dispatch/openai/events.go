package openai

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// events reads server-sent events. Fields other than data say nothing that the data doesn't.
type events struct {
	in     *bufio.Reader
	memory *streamMemory
	held   int // of it, by the buffers
	data   []byte
	// the last line ended with a carriage return; a line feed that follows belongs to it
	afterR bool
	begun  bool
}

func newEvents(from io.Reader, memory *streamMemory) *events {
	return &events{in: bufio.NewReaderSize(from, 4<<10), memory: memory}
}

// next returns the data of the next event, which is good until the next call. The last one counts
// though no blank line follows it.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	some := false
	for {
		line, err := e.line()
		if err != nil && (err != io.EOF || len(line) == 0) {
			if err == io.EOF && some {
				return e.data, nil
			}
			return nil, err
		}
		if len(line) == 0 {
			if some {
				return e.data, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != "data" {
			continue
		}
		if some {
			e.data = append(e.data, '\n')
		}
		some = true
		e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		if int64(len(e.data)) > e.memory.limit {
			return nil, fmt.Errorf("%w: an event over %d bytes", ErrTooLarge, e.memory.limit)
		}
		if err := e.hold(cap(e.data)); err != nil {
			return nil, err
		}
	}
}

// line reads up to the next line feed, carriage return or both, without waiting for what follows a
// carriage return.
func (e *events) line() ([]byte, error) {
	var line []byte // empty while the line lies in the reader's buffer as a whole
	for {
		if _, err := e.in.Peek(1); err != nil {
			return line, err
		}
		here, _ := e.in.Peek(e.in.Buffered())
		if e.afterR {
			e.afterR = false
			if here[0] == '\n' {
				e.in.Discard(1)
				continue
			}
		}
		end := bytes.IndexAny(here, "\r\n")
		if end < 0 {
			line = append(line, here...)
			e.in.Discard(len(here))
			if err := e.checkLine(line); err != nil {
				return nil, err
			}
			if err := e.hold(cap(line) + cap(e.data)); err != nil {
				return nil, err
			}
			continue
		}
		e.afterR = here[end] == '\r'
		if line == nil {
			line = here[:end]
		} else {
			line = append(line, here[:end]...)
		}
		e.in.Discard(end + 1) // the bytes stay until the next read
		if err := e.checkLine(line); err != nil {
			return nil, err
		}
		if !e.begun {
			e.begun = true
			line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		}
		return line, nil
	}
}

// checkLine refuses a line that is too long. The limit leaves room for the field's name.
func (e *events) checkLine(line []byte) error {
	if int64(len(line)) > e.memory.limit+64 {
		return fmt.Errorf("%w: a line of an event over %d bytes", ErrTooLarge, e.memory.limit)
	}
	return nil
}

// hold takes room for buffers of that size, together.
func (e *events) hold(bytes int) error {
	if bytes <= e.held {
		return nil
	}
	more := bytes - e.held
	e.held = bytes
	return e.memory.add(int64(more))
}
