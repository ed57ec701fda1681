package openai

import (
	"errors"
	"fmt"
	"net/http"
)

// Memory lends room for answers. It never makes anybody wait: where there is none, an answer goes
// to a file, or a stream is given up. It is safe for concurrent use.
type Memory interface {
	// Take reports whether so many bytes may be held from now on.
	Take(bytes int64) bool
	// Give ends that.
	Give(bytes int64)
}

const (
	// smallAnswer is what every answer may take without asking, so that usual ones cost nothing.
	smallAnswer = 16 << 10
	// largestAnswer is what an answer may take in memory; larger ones go to a file.
	largestAnswer = 1 << 20
	// largestStream is the same for a stream that is put together, its working memory included.
	largestStream = 4 << 20
)

// errTooLong says that a stream takes more memory than there is for it. Asked for without
// streaming, the answer may go to a file.
var errTooLong = fmt.Errorf("%w: %w", ErrUnjoined, ErrTooLong)

// ErrTooLong comes with ErrUnjoined when a stream is too long to be put together in memory. That
// says nothing against streaming.
var ErrTooLong = errors.New("it is too long to be put together in memory")

// room is the memory of one stream.
type room struct {
	most   int64 // bytes that the answer may have
	memory Memory
	used   int64
	taken  int64
}

// add takes room for more bytes, or gives some up.
func (r *room) add(bytes int64) error {
	const step = 16 << 10
	r.used += bytes
	if r.used > largestStream {
		return errTooLong
	}
	for r.used-smallAnswer > r.taken {
		if r.memory != nil && !r.memory.Take(step) {
			return errTooLong
		}
		r.taken += step
	}
	return nil
}

func (r *room) close() {
	if r.memory != nil && r.taken > 0 {
		r.memory.Give(r.taken)
	}
}

// Scratch is what a caller of Send lends it again and again, to spare the making of it. It must not
// be shared between calls that overlap. Its zero value holds answers of any size in memory.
type Scratch struct {
	// Memory is where an answer's buffer takes its room from; nil: there is always room.
	Memory Memory

	answer []byte // the buffer that an answer's body is read into
	taken  int64  // of Memory
	header http.Header
	of     *Client // whose header it is

	passage passage // of the request under way
}

// grow makes room for n bytes in the buffer; false: there is none.
func (s *Scratch) grow(n int) bool {
	if n <= cap(s.answer) {
		return true
	}
	size := max(4<<10, cap(s.answer))
	for size < n {
		size *= 2
	}
	if s.Memory != nil && n > largestAnswer || !s.take(size) {
		return false
	}
	s.answer = append(make([]byte, 0, size), s.answer...)
	return true
}

// take takes memory for a buffer of a size; false: there is none.
func (s *Scratch) take(size int) bool {
	more := int64(size-smallAnswer) - s.taken
	if s.Memory == nil || more <= 0 {
		return true
	}
	if !s.Memory.Take(more) {
		return false
	}
	s.taken += more
	return true
}

// adopt makes a buffer that began as the scratch's its own again; false: there is no room for it.
func (s *Scratch) adopt(buf []byte) bool {
	if !s.take(cap(buf)) {
		return false
	}
	s.answer = buf
	return true
}

// Trim lets go of a buffer that is larger than keep bytes.
func (s *Scratch) Trim(keep int) {
	if cap(s.answer) <= keep {
		return
	}
	s.answer = nil
	if s.taken > 0 {
		s.Memory.Give(s.taken)
		s.taken = 0
	}
}
