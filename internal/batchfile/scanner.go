package batchfile

import (
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

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

	carry  []byte // the first bytes of the current line, from earlier writes
	over   int    // bytes of the current line if it is too long to be held
	blank  bool   // these are white space
	offset int64  // of the current line
	row    uint32 // rows begun before the current one

	request request
	ids     idSet
	models  map[string]uint16
	urls    map[string]uint16
	scratch []byte // decoded text of the current value

	summary Summary
}

// NewScanner returns a Scanner that writes the line index to index.
func NewScanner(index io.Writer, limits Limits) *Scanner {
	return &Scanner{
		limits: limits.withDefaults(),
		index:  newIndexWriter(index),
		ids:    newIDSet(),
		models: make(map[string]uint16),
		urls:   make(map[string]uint16),
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
	if (len(s.carry) > 0 || s.over > 0) && sum.Bytes <= s.limits.MaxBytes {
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

// hold keeps a piece of a line that continues. Of a line that is too long, only the size is kept.
func (s *Scanner) hold(p []byte) {
	switch {
	case s.over > 0:
		s.over += len(p)
		s.blank = s.blank && isBlank(p)
	case len(s.carry)+len(p)-len(byteOrderMark) <= s.limits.MaxLineBytes:
		s.carry = append(s.carry, p...)
	default:
		s.carry = append(s.carry, p[:min(len(p), len(byteOrderMark))]...)
		p = p[min(len(p), len(byteOrderMark)):]
		held := s.carry
		s.offset += s.skipMark(&held)
		s.over = len(held) + len(p)
		s.blank = isBlank(held) && isBlank(p)
		s.carry = nil
	}
}

// endLine reads the last piece of a line and checks the line.
func (s *Scanner) endLine(p []byte) {
	s.row++
	if len(s.carry) > 0 || s.over > 0 {
		s.hold(p)
		p = s.carry
		s.carry = s.carry[:0]
	}
	if s.over > 0 {
		s.counted(s.blank, s.over)
		s.offset += int64(s.over) + 1
		s.over = 0
		return
	}
	s.offset += s.skipMark(&p)
	s.line(p)
	s.offset += int64(len(p)) + 1
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// skipMark removes a byte order mark at the beginning of the file, and returns its size.
func (s *Scanner) skipMark(p *[]byte) int64 {
	if s.offset > 0 || !bytes.HasPrefix(*p, byteOrderMark) {
		return 0
	}
	*p = (*p)[len(byteOrderMark):]
	return int64(len(byteOrderMark))
}

// line checks a line that is in memory.
func (s *Scanner) line(line []byte) {
	if !s.counted(isBlank(line), len(line)) {
		return
	}
	if !utf8.Valid(line) {
		s.notUTF8(validPrefix(line))
		return
	}
	if at, err := s.request.parse(line); err != nil {
		s.notJSON(at, err)
		return
	}
	s.judge(&s.request)
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

func (s *Scanner) notUTF8(at int) {
	s.lineFault(CodeInvalidJSON, noField,
		"This line is not parseable as valid JSON. Byte %d is not UTF-8; save the file as UTF-8.",
		at+1)
}

func (s *Scanner) notJSON(at int, err error) {
	s.lineFault(CodeInvalidJSON, noField, "This line is not parseable as valid JSON. Byte %d: %v.",
		at+1, err)
}
