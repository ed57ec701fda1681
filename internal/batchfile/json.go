package batchfile

// The package validates JSON by hand, because users wait for it: an upload is validated while it
// arrives, and the answer to the upload waits for both. encoding/json needs five to ten times as
// long: more than two seconds for a file of 200 MB that a disk takes in less than one. It also
// accepts repeated keys, and needs each value in memory, where answers of engines have no place.
// encoding/json/jsontext, an experiment of Go 1.26, needs two to three times as long. Measure with
//
//	go test -run '^$' -bench 'Scan|StandardLibrary' ./internal/batchfile
//	GOEXPERIMENT=jsonv2 go test -run '^$' -bench 'Scan|JSONText' ./internal/batchfile
//
// The input is hostile. FuzzValid compares syntax with encoding/json.Valid on any bytes. FuzzLine
// compares the scanner with encoding/json on lines. FuzzChunks, FuzzPieces and FuzzObjectScanner
// compare input in pieces with input in memory. FuzzCursor compares Cursor with valid, FuzzMembers
// compares Members with encoding/json.

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// maxDepth is the maximum depth of nested values in a batch line.
const maxDepth = 512

// answerDepth is the maximum depth in answers of engines. It is the limit of encoding/json, because
// an answer can't be corrected.
const answerDepth = 10_000

// syntaxError is the reason why bytes are not JSON. It is returned with the position of the wrong
// byte. 0: none.
type syntaxError uint8

func (e syntaxError) Error() string { return syntaxErrors[e] }

const (
	errCut syntaxError = 1 + iota
	errNoObject
	errValue
	errKey
	errColon
	errMember
	errElement
	errNumber
	errLiteral
	errEscape
	errControl
	errTrailing
	errTooNested
)

var syntaxErrors = [...]string{
	errCut:       "the line ends before the value does; write each object on one line",
	errNoObject:  "not a JSON object",
	errValue:     "expected a value",
	errKey:       "expected a key in double quotes",
	errColon:     "expected ':' after the key",
	errMember:    "expected ',' or '}' after the member",
	errElement:   "expected ',' or ']' after the element",
	errNumber:    "malformed number",
	errLiteral:   "expected true, false or null",
	errEscape:    `unknown escape in a string; escape the backslash itself as \\`,
	errControl:   `control character in a string; escape it, a tab as \t`,
	errTrailing:  "more follows the value; give each object a line of its own",
	errTooNested: "nested too deep",
}

// span is a part of a line, b[start:end]. The zero value means that the part is absent.
type span struct{ start, end int }

func (s span) of(b []byte) []byte { return b[s.start:s.end] }
func (s span) len() int           { return s.end - s.start }
func (s span) present() bool      { return s.end > 0 }

// valid reports whether b is exactly one JSON value.
func valid(b []byte, depth int) bool {
	s := syntax{level: unreported, limit: int16(depth)}
	if _, ev := s.run(b, 0); ev == faulty {
		return false
	}
	_, err := s.finish(len(b))
	return err == nil
}

// skipValue returns the position after the value that begins at b[i], or the position of the first
// wrong byte and the reason.
func skipValue(b []byte, i, depth int) (int, error) {
	s := syntax{state: atValue, limit: int16(depth)}
	ev := cut
	if i < len(b) {
		i, ev = s.inside(b, i)
	}
	if ev == cut {
		i, ev = s.run(b, i)
	}
	if ev == ends {
		return i, nil
	}
	return s.finish(len(b))
}

// Words of eight equal bytes, to compare eight bytes of a string at once.
const (
	ones     = 0x0101010101010101
	highs    = ones * 0x80
	quotes   = ones * '"'
	slashes  = ones * '\\'
	controls = ones * 0x20
)

// endsRun sets the high bit of each byte of w that ends a run of plain string bytes: quotes,
// backslashes and control characters. Only the lowest mark is exact, because a borrow may mark
// bytes above it; callers use only that.
func endsRun(w uint64) uint64 {
	quote, slash := w^quotes, w^slashes
	return ((quote - ones) | (slash - ones) | (w - controls)) &^ w & highs
}

// skipPlain returns the position of the first byte from b[i] on that is not plain.
func skipPlain(b []byte, i int) int {
	rest := b[i:]
	for len(rest) >= 16 {
		first := endsRun(binary.LittleEndian.Uint64(rest))
		second := endsRun(binary.LittleEndian.Uint64(rest[8:]))
		if first|second == 0 {
			rest = rest[16:]
			continue
		}
		if first == 0 {
			first, rest = second, rest[8:]
		}
		rest = rest[bits.TrailingZeros64(first)>>3:]
		break
	}
	for i = len(b) - len(rest); i < len(b) && plain[b[i]]; {
		i++
	}
	return i
}

// plain holds the bytes that need no escape in a string, shortEscape those that form an escape with
// a backslash before them.
var plain, shortEscape = func() (plain, escape [256]bool) {
	for c := range plain {
		plain[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	for _, c := range `"\/bfnrt` {
		escape[c] = true
	}
	return plain, escape
}()

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && isSpace(b[i]) {
		i++
	}
	return i
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\t' || c == '\r' || c == '\n') }

func isDigit(c byte) bool { return c-'0' <= 9 }

func hexDigit(c byte) rune {
	switch {
	case isDigit(c):
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

// count parses a non-negative integer. Anything else is 0, as if it were absent. Integers beyond
// int64 become the largest int64.
func count(number []byte) int64 {
	var n int64
	for _, c := range number {
		if !isDigit(c) {
			return 0
		}
		if n > (math.MaxInt64-9)/10 {
			return math.MaxInt64
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
