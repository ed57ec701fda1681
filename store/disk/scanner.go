package disk

import (
	"bytes"
	"hash/crc32"
	"io"

	"github.com/tidefill/tidefill/store"
)

// window is the number of bytes that a scanner reads at a time.
const window = 256 << 10

// scanner reads the intact frames of a journal and skips damaged bytes. It holds one window in
// memory. Of a larger frame it returns everything except the result.
type scanner struct {
	file io.ReaderAt
	at   int64 // where the search for the next frame starts
	end  int64 // where the file ended when the scan began

	buf      []byte // file[bufAt : bufAt+len(buf)]
	bufAt    int64
	frame    frame // valid until the next call of next
	result   int64 // length of the frame's result
	frameAt  int64
	frameEnd int64

	damaged int64 // bytes skipped so far, those at the end of the file included
	torn    bool  // the scan ended in damage
	err     error
}

func newScanner(file io.ReaderAt, from, end int64) *scanner {
	return &scanner{file: file, at: from, end: end, frameEnd: from}
}

// next advances to the next intact frame; false at the end or on an error.
func (s *scanner) next() bool {
	s.torn = false
	for s.err == nil && s.end-s.at >= fenceSize {
		if size, ok := s.intact(); ok {
			s.frame, s.err = decodeFrame(s.bytes(s.loadSize(size)))
			s.result = size - fenceSize
			s.frameAt, s.frameEnd = s.at, s.at+size
			s.at += size
			return s.err == nil
		}
		if s.err == nil {
			s.skip()
		}
	}
	if s.err == nil && s.at < s.end {
		s.damaged += s.end - s.at
		s.at = s.end
	}
	s.torn = s.frameEnd < s.end
	return false
}

// loadSize returns how many bytes of a frame of the given size are decoded: all of them, unless the
// result is too large.
func (s *scanner) loadSize(size int64) int64 {
	if size > fenceSize+store.MaxReadResult {
		return fenceSize
	}
	return size
}

// intact returns the size of the frame at s.at, and whether it is undamaged. Its beginning is
// loaded then.
func (s *scanner) intact() (int64, bool) {
	if !s.load(prefixSize) {
		return 0, false
	}
	size, ok := frameSize(s.bytes(prefixSize))
	if !ok || size > s.end-s.at {
		return 0, false
	}
	part := s.loadSize(size)
	if !s.load(part) {
		return 0, false
	}
	begin := s.bytes(part)
	sum, wanted := checksum(begin), storedChecksum(begin)
	if part < size {
		sum, ok = s.checksumRange(sum, s.at+part, s.at+size)
		if !ok || !s.load(part) {
			return 0, false
		}
	}
	return size, sum == wanted
}

// checksumRange adds a range of bytes to a checksum, one window at a time.
func (s *scanner) checksumRange(sum uint32, from, to int64) (uint32, bool) {
	at := s.at
	defer func() { s.at = at }()
	for s.at = from; s.at < to; {
		n := min(to-s.at, window)
		if !s.load(n) {
			return 0, false
		}
		sum = crc32.Update(sum, castagnoli, s.bytes(n))
		s.at += n
	}
	return sum, true
}

// skip moves s.at to where the next frame may start.
func (s *scanner) skip() {
	from := s.at
	s.at++
	for s.end-s.at >= fenceSize && s.load(fenceSize) {
		rest := s.buf[s.at-s.bufAt:]
		if i := bytes.Index(rest, magic[:]); i >= 0 {
			s.at += int64(i)
			break
		}
		s.at += int64(len(rest) - len(magic) + 1)
	}
	s.damaged += s.at - from
}

// load reads n bytes from s.at on into the buffer, one window at most. The bytes must exist.
func (s *scanner) load(n int64) bool {
	if s.err != nil {
		return false
	}
	if s.at >= s.bufAt && s.at+n <= s.bufAt+int64(len(s.buf)) {
		return true
	}
	size := min(window, s.end-s.at)
	if int64(cap(s.buf)) < size {
		s.buf = make([]byte, size)
	}
	s.buf, s.bufAt = s.buf[:size], s.at
	if _, err := s.file.ReadAt(s.buf, s.at); err != nil {
		s.err = err
		s.buf = s.buf[:0]
		return false
	}
	return true
}

// bytes returns n loaded bytes from s.at on.
func (s *scanner) bytes(n int64) []byte {
	from := s.at - s.bufAt
	return s.buf[from : from+n : from+n]
}
