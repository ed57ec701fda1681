package openai

import (
	"errors"
	"fmt"
)

// largestStream is the memory that a stream may take while it is assembled.
const largestStream = 4 << 20

// ErrTooLong comes with ErrNotAssembled when a stream is too long to be assembled in memory. The
// same request without streaming may succeed, since its answer may go to a file.
var ErrTooLong = errors.New("it is too long to be assembled in memory")

var errTooLong = fmt.Errorf("%w: %w", ErrNotAssembled, ErrTooLong)

// streamMemory is the memory that one stream takes.
type streamMemory struct {
	limit  int64  // of the answer's bytes
	memory Memory // nil: there is no limit
	used   int64
	taken  int64
}

// add takes memory for more bytes; fewer, if bytes is negative.
func (m *streamMemory) add(bytes int64) error {
	const step = 16 << 10
	m.used += bytes
	if m.used > largestStream {
		return errTooLong
	}
	for m.used-smallAnswer > m.taken {
		if m.memory != nil && !m.memory.Take(step) {
			return errTooLong
		}
		m.taken += step
	}
	return nil
}

// close gives back all that was taken.
func (m *streamMemory) close() {
	if m.memory != nil && m.taken > 0 {
		m.memory.Give(m.taken)
	}
}
