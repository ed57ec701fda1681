package batchfile

import (
	"io"
	"unicode/utf8"
)

// BodyWriter passes the body of an answer on, valid JSON, in the form that it has within a result
// line (see AppendResult): newlines as spaces, stretches that are not UTF-8 as U+FFFD. It takes
// pieces of any size and holds one of them.
type BodyWriter struct {
	to    io.Writer
	out   []byte
	carry []byte // the beginning of a rune whose rest is still to come
	bad   bool   // the last byte was not UTF-8
	bytes int64
}

// NewBodyWriter passes on to a writer.
func NewBodyWriter(to io.Writer) *BodyWriter { return &BodyWriter{to: to} }

// Bytes is how many were passed on.
func (w *BodyWriter) Bytes() int64 { return w.bytes }

// Write takes the next piece.
func (w *BodyWriter) Write(p []byte) (int, error) {
	w.out = w.out[:0]
	rest := p
	for len(w.carry) > 0 && len(rest) > 0 {
		w.carry, rest = append(w.carry, rest[0]), rest[1:]
		if utf8.FullRune(w.carry) {
			whole := w.carry
			w.carry = w.carry[:0:0]
			w.add(whole)
		}
	}
	w.add(rest)
	return len(p), w.flush()
}

// Close passes on what was held back.
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

// add takes bytes that begin with a rune, or with what is none.
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
