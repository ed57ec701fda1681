package openai

import "net/http"

// Memory limits the bytes that answers take. It never waits: without memory an answer goes to a
// file, and a stream is given up. It is safe for concurrent use.
type Memory interface {
	// Take takes bytes; false: there are not that many.
	Take(bytes int64) bool
	// Give gives back bytes that were taken.
	Give(bytes int64)
}

const (
	// smallAnswer is the size that every answer may have without taking from Memory.
	smallAnswer = 16 << 10
	// largestAnswer is the largest size in memory; larger answers go to a file.
	largestAnswer = 1 << 20
)

// Scratch holds buffers that successive calls of Send reuse. Calls that overlap must not share one.
// Its zero value holds answers of any size in memory.
type Scratch struct {
	// Memory limits the size of the answer's buffer; nil: there is no limit.
	Memory Memory

	answer []byte // the buffer for an answer's body
	taken  int64  // from Memory
	header http.Header
	of     *Client // whose header it is
	traced bool    // header has a traceparent

	passage passage // of the request in flight
}

// grow makes the buffer at least n bytes large; false: there is no memory for that.
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

// take takes memory for a buffer of a size; false: there is not enough.
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

// adopt makes buf the scratch's buffer; false: there is no memory for it.
func (s *Scratch) adopt(buf []byte) bool {
	if !s.take(cap(buf)) {
		return false
	}
	s.answer = buf
	return true
}

// Trim frees the buffer if it is larger than keep bytes.
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
