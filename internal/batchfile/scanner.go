package batchfile

import (
	"bytes"
	"fmt"
	"io"
)

// heldBytes bounds the part of a line that is kept between writes. A longer line is read in pieces.
const heldBytes = 64 << 10

// Scanner checks a batch input file while it is written, and writes the line index. Faults of the
// content are collected in the Summary, not returned as errors: the upload continues, and all
// faults are reported when a batch is created from the file.
//
// The index holds only lines without a fault, so the index of a file without faults holds all
// lines.
type Scanner struct {
	limits Limits
	index  *indexWriter
	failed error // the first error of the index

	window int    // heldBytes, or less in tests; at least utf8.UTFMax
	carry  []byte // bytes of the current line that the request has not read
	begun  bool   // the request has read some of the line
	offset int64  // of the current line
	row    uint32 // rows begun before the current one

	request *request
	ids     idSet
	models  map[string]uint16
	urls    map[string]uint16
	scratch []byte // decoded text of the current value

	summary Summary
}

// NewScanner returns a Scanner that writes the line index to index.
func NewScanner(index io.Writer, limits Limits) *Scanner {
	return &Scanner{
		limits:  limits.withDefaults(),
		window:  heldBytes,
		index:   newIndexWriter(index),
		request: newRequest(),
		ids:     newIDSet(),
		models:  make(map[string]uint16),
		urls:    make(map[string]uint16),
	}
}

// Write reads the next bytes of the file, in pieces of any size. It fails only if the index can't
// be written.
func (s *Scanner) Write(p []byte) (int, error) {
	n := len(p)
	scanned := max(0, s.limits.MaxBytes-s.summary.Bytes)
	s.summary.Bytes += int64(n)
	if scanned < int64(n) { // the file is too large; only its size is counted
		p = p[:scanned]
	}
	for s.failed == nil {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.hold(p)
			break
		}
		s.endLine(p[:end])
		p = p[end+1:]
	}
	if s.failed != nil {
		return 0, fmt.Errorf("write line index: %w", s.failed)
	}
	return n, nil
}

// Finish ends the file. It checks what depends on the complete file, and completes the index.
func (s *Scanner) Finish() (Summary, error) {
	sum := &s.summary
	if (len(s.carry) > 0 || s.begun) && sum.Bytes <= s.limits.MaxBytes {
		s.endLine(nil)
	}
	if sum.Bytes > s.limits.MaxBytes {
		s.fileFault(CodeFileTooLarge, fmt.Sprintf(
			"The file has %d bytes, the limit is %d; split it into several batches.", sum.Bytes,
			s.limits.MaxBytes))
	}
	if sum.Lines > s.limits.MaxLines {
		s.fileFault(CodeTooManyTasks, fmt.Sprintf(
			"The file has %d requests, the limit is %d; split it into several batches.", sum.Lines,
			s.limits.MaxLines))
	}
	if sum.Lines == 0 && sum.Bytes <= s.limits.MaxBytes {
		s.fileFault(CodeEmptyFile, "The file has no requests; write one JSON object per line.")
	}
	models := make([]string, len(sum.Models))
	for i, m := range sum.Models {
		models[i] = m.Name
	}
	urls := make([]string, len(sum.URLs))
	for i, u := range sum.URLs {
		urls[i] = u.URL
	}
	if s.failed == nil {
		s.failed = s.index.finish(models, urls)
	}
	if s.failed != nil {
		return Summary{}, fmt.Errorf("write line index: %w", s.failed)
	}
	return *sum, nil
}

// hold reads a piece of a line that continues.
func (s *Scanner) hold(p []byte) {
	for len(s.carry)+len(p) > s.window {
		n := s.window - len(s.carry)
		s.carry = append(s.carry, p[:n]...)
		p = p[n:]
		complete := len(s.carry) - cutRune(s.carry)
		s.read(s.carry[:complete], false)
		s.carry = append(s.carry[:0], s.carry[complete:]...)
	}
	s.carry = append(s.carry, p...)
}

// endLine reads the last piece of a line and checks the line.
func (s *Scanner) endLine(p []byte) {
	s.row++
	if len(s.carry) > 0 || s.begun {
		s.hold(p)
		p = s.carry
		s.carry = s.carry[:0]
	}
	s.read(p, !s.begun)
	s.judgeLine()
	s.offset += int64(s.request.size) + 1
	s.begun = false
}

// read passes a piece of the current line, or the whole line, to the request. Of a line that is too
// long, or one too many, only the size counts.
func (s *Scanner) read(p []byte, whole bool) {
	r := s.request
	if !s.begun {
		s.begun = true
		r.reset()
		if s.offset == 0 && bytes.HasPrefix(p, byteOrderMark) {
			s.offset = int64(len(byteOrderMark))
			p = p[len(byteOrderMark):]
		}
	}
	if s.summary.Lines >= s.limits.MaxLines || r.size+len(p) > s.limits.MaxLineBytes {
		r.count(p)
		return
	}
	if whole {
		r.whole = p
	}
	r.write(p)
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// judgeLine checks the line that the request has read.
func (s *Scanner) judgeLine() {
	r := s.request
	if !s.counted(r.blank, r.size) {
		return
	}
	if r.notUTF8 > 0 {
		s.lineFault(CodeInvalidJSON, noField, "This line is not parseable as valid JSON. "+
			"Byte %d is not UTF-8; save the file as UTF-8.", r.notUTF8)
		return
	}
	if at, err := r.object.finish(0); err != nil {
		s.lineFault(CodeInvalidJSON, noField,
			"This line is not parseable as valid JSON. Byte %d: %v.", at+1, err)
		return
	}
	s.judge(r)
}

func isBlank(p []byte) bool { return skipSpace(p, 0) == len(p) }

// counted counts a line and reports whether it is to be checked.
func (s *Scanner) counted(blank bool, size int) bool {
	if blank {
		return false
	}
	s.summary.Lines++
	// The file has too many lines; the rest is only counted.
	if s.summary.Lines > s.limits.MaxLines {
		return false
	}
	if size > s.limits.MaxLineBytes {
		s.lineFault(CodeLineTooLong, noField,
			"The line has %d bytes, the limit is %d; send what it holds in several lines.",
			size, s.limits.MaxLineBytes)
		return false
	}
	return true
}
