package frame

import (
	"bytes"
	"io"

	"github.com/tidefill/tidefill/store"
)

// Window is the number of bytes that a scanner reads at a time.
const Window = 256 << 10

// Scanner reads the intact frames of a journal and skips damaged bytes. It holds one window in
// memory. Of a larger frame it returns everything except the result.
type Scanner struct {
	Frame  Frame // valid until the next call of Next
	Result int64 // length of the frame's result
	From   int64 // where the frame starts
	To     int64 // where the last intact frame ends

	Damaged int64 // bytes skipped so far, those at the end of the file included
	Err     error

	file  io.ReaderAt
	at    int64  // where the search for the next frame starts
	end   int64  // where the file ended when the scan began
	buf   []byte // file[bufAt : bufAt+len(buf)]
	bufAt int64
}

// NewScanner returns a scanner of the bytes [from, end) of a file.
func NewScanner(file io.ReaderAt, from, end int64) *Scanner {
	return &Scanner{file: file, at: from, end: end, To: from}
}

// Next advances to the next intact frame; false at the end or on an error.
func (s *Scanner) Next() bool {
	for s.Err == nil && s.end-s.at >= EmptySize {
		if size, ok := s.intact(); ok {
			s.Frame, s.Err = decode(s.bytes(s.loadSize(size)))
			s.Result = size - EmptySize
			s.Frame.Record.Size = s.Result
			s.From, s.To = s.at, s.at+size
			s.at += size
			return s.Err == nil
		}
		if s.Err == nil {
			s.skip()
		}
	}
	if s.Err == nil && s.at < s.end {
		s.Damaged += s.end - s.at
		s.at = s.end
	}
	return false
}

// loadSize returns the number of bytes of a frame of the given size that are decoded: all of them,
// unless the result is too large.
func (s *Scanner) loadSize(size int64) int64 {
	if size > EmptySize+store.MaxReadResult {
		return EmptySize
	}
	return size
}

// intact returns the size of the frame at s.at, and whether it is undamaged. Its beginning is
// loaded then.
func (s *Scanner) intact() (int64, bool) {
	if !s.load(PrefixSize) {
		return 0, false
	}
	size, ok := Size(s.bytes(PrefixSize))
	if !ok || size > s.end-s.at {
		return 0, false
	}
	part := s.loadSize(size)
	if !s.load(part) {
		return 0, false
	}
	begin := s.bytes(part)
	sum, wanted := Checksum(begin), StoredChecksum(begin)
	if part < size {
		sum, ok = s.checksumRange(sum, s.at+part, s.at+size)
		if !ok || !s.load(part) {
			return 0, false
		}
	}
	return size, sum == wanted
}

// checksumRange adds a range of bytes to a checksum, one window at a time.
func (s *Scanner) checksumRange(sum uint32, from, to int64) (uint32, bool) {
	at := s.at
	defer func() { s.at = at }()
	for s.at = from; s.at < to; {
		n := min(to-s.at, Window)
		if !s.load(n) {
			return 0, false
		}
		sum = Update(sum, s.bytes(n))
		s.at += n
	}
	return sum, true
}

// skip moves s.at to where the next frame may start.
func (s *Scanner) skip() {
	from := s.at
	s.at++
	for s.end-s.at >= EmptySize && s.load(EmptySize) {
		rest := s.buf[s.at-s.bufAt:]
		if i := bytes.Index(rest, magic[:]); i >= 0 {
			s.at += int64(i)
			break
		}
		s.at += int64(len(rest) - len(magic) + 1)
	}
	s.Damaged += s.at - from
}

// load reads n bytes from s.at on into the buffer, one window at most. The bytes must exist.
func (s *Scanner) load(n int64) bool {
	if s.Err != nil {
		return false
	}
	if s.at >= s.bufAt && s.at+n <= s.bufAt+int64(len(s.buf)) {
		return true
	}
	size := min(Window, s.end-s.at)
	if int64(cap(s.buf)) < size {
		s.buf = make([]byte, size)
	}
	s.buf, s.bufAt = s.buf[:size], s.at
	if _, err := s.file.ReadAt(s.buf, s.at); err != nil {
		s.Err = err
		s.buf = s.buf[:0]
		return false
	}
	return true
}

// bytes returns n loaded bytes from s.at on.
func (s *Scanner) bytes(n int64) []byte {
	from := s.at - s.bufAt
	return s.buf[from : from+n : from+n]
}
