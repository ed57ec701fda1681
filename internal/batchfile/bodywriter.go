package batchfile

import (
	"io"
	"unicode/utf8"
)

// BodyWriter converts the body of an answer, which must be valid JSON, to its form within a result
// line (see AppendResult) and writes it to another writer: newlines become spaces, sequences that
// are not UTF-8 become U+FFFD. It accepts pieces of any size and holds one of them.
type BodyWriter struct {
	to    io.Writer
	out   []byte
	carry []byte // the first bytes of an incomplete rune
	bad   bool   // the last byte was not UTF-8
	bytes int64
}

// NewBodyWriter returns a BodyWriter that writes to to. The caller closes it at the end of the
// body.
func NewBodyWriter(to io.Writer) *BodyWriter { return &BodyWriter{to: to} }

// Bytes returns the number of bytes written so far.
func (w *BodyWriter) Bytes() int64 { return w.bytes }

// Write converts the next piece of the body.
func (w *BodyWriter) Write(p []byte) (int, error) {
	w.out = w.out[:0]
	rest := p
	for len(w.carry) > 0 && len(rest) > 0 {
		w.carry, rest = append(w.carry, rest[0]), rest[1:]
		if utf8.FullRune(w.carry) {
			char := w.carry
			w.carry = w.carry[:0:0]
			w.add(char)
		}
	}
	w.add(rest)
	return len(p), w.flush()
}

// Close writes what was held back. It does not close the other writer.
func (w *BodyWriter) Close() error {
	w.out = w.out[:0]
	if len(w.carry) > 0 {
		w.replace()
		w.carry = nil
	}
	return w.flush()
}

func (w *BodyWriter) flush() error {
	blank(w.out, '\n')
	blank(w.out, '\r')
	n, err := w.to.Write(w.out)
	w.bytes += int64(n)
	return err
}

// add converts bytes that begin at the boundary of a rune.
func (w *BodyWriter) add(b []byte) {
	for len(b) > 0 {
		n := validPrefix(b)
		if n > 0 {
			w.out, w.bad = append(w.out, b[:n]...), false
			b = b[n:]
			continue
		}
		if !utf8.FullRune(b) {
			w.carry = append(w.carry, b...)
			return
		}
		w.replace()
		b = b[1:]
	}
}

func (w *BodyWriter) replace() {
	if !w.bad {
		w.out = append(w.out, "\uFFFD"...)
	}
	w.bad = true
}
