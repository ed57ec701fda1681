package disk

import (
	"bytes"
	"hash/crc32"
	"io"

	"github.com/tidefill/tidefill/store"
)

// window is how much a scanner reads at a time.
const window = 256 << 10

// scanner walks through the intact frames of a journal and skips what is damaged. It holds one
// window in memory. Of frames that are too large for that it yields everything but the result.
type scanner struct {
	file io.ReaderAt
	at   int64 // where the next frame is looked for
	end  int64 // where the file ended when the scan began

	buf      []byte // file[bufAt : bufAt+len(buf)]
	bufAt    int64
	frame    frame // valid until the next call of next
	result   int64 // how long the frame's result is
	frameAt  int64
	frameEnd int64

	damaged int64 // bytes skipped so far, those of a torn tail included
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
		if size, ok := s.whole(); ok {
			s.frame, s.err = decodeFrame(s.bytes(s.loaded(size)))
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

// loaded is how much of a frame of that size is decoded from the window: all of it, unless its
// result is too large.
func (s *scanner) loaded(size int64) int64 {
	if size > fenceSize+store.MaxReadResult {
		return fenceSize
	}
	return size
}

// whole reports the size of the frame at s.at, and whether it stands there undamaged. Its beginning
// is loaded then.
func (s *scanner) whole() (int64, bool) {
	if !s.load(prefixSize) {
		return 0, false
	}
	size, ok := frameSize(s.bytes(prefixSize))
	if !ok || size > s.end-s.at {
		return 0, false
	}
	part := s.loaded(size)
	if !s.load(part) {
		return 0, false
	}
	begin := s.bytes(part)
	sum, wanted := checksum(begin), wantedChecksum(begin)
	if part < size {
		sum, ok = s.sumOf(sum, s.at+part, s.at+size)
		if !ok || !s.load(part) {
			return 0, false
		}
	}
	return size, sum == wanted
}

// sumOf adds the bytes of a stretch to a checksum, a window at a time.
func (s *scanner) sumOf(sum uint32, from, to int64) (uint32, bool) {
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

// skip goes on to where the next frame may start.
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

// load makes n bytes from s.at on, a window at most, available in the buffer; the caller knows that
// they exist.
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
