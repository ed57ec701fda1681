package batchfile

// This file validates JSON by hand, because users wait for it: an upload is validated while it
// arrives, and the answer to the upload waits for both. encoding/json needs five to ten times as
// long as the scanner: more than two seconds for a file of 200 MB that a disk takes in less than
// one. It also needs each line in memory (lines may have 16 MiB), and accepts repeated keys.
// encoding/json/jsontext, an experiment of Go 1.26, needs two to three times as long. Measure with
//
//	go test -run '^$' -bench 'Scan|StandardLibrary' ./internal/batchfile
//	GOEXPERIMENT=jsonv2 go test -run '^$' -bench 'Scan|JSONText' ./internal/batchfile
//
// The input is hostile. FuzzValid compares the functions here with encoding/json.Valid on any
// bytes. FuzzLine compares the scanner with encoding/json on lines. FuzzChunks, FuzzPieces and
// FuzzObjectScanner compare the variants for input in pieces with those for input in memory.
// FuzzCursor compares Cursor with the functions here, FuzzMembers compares Members with
// encoding/json.

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
// byte.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

const (
	errCut = syntaxError(
		"the line ends before the value does; write each object on one line")
	errNoObject  = syntaxError("not a JSON object")
	errValue     = syntaxError("expected a value")
	errKey       = syntaxError("expected a key in double quotes")
	errColon     = syntaxError("expected ':' after the key")
	errMember    = syntaxError("expected ',' or '}' after the member")
	errElement   = syntaxError("expected ',' or ']' after the element")
	errNumber    = syntaxError("malformed number")
	errLiteral   = syntaxError("expected true, false or null")
	errEscape    = syntaxError("unknown escape in a string; escape the backslash itself as \\\\")
	errControl   = syntaxError("control character in a string; escape it, a tab as \\t")
	errTrailing  = syntaxError("more follows the value; give each object a line of its own")
	errTooNested = syntaxError("nested too deep")
)

// span is a part of a line, b[start:end]. The zero value means that the part is absent.
type span struct{ start, end int }

func (s span) of(b []byte) []byte { return b[s.start:s.end] }
func (s span) len() int           { return s.end - s.start }
func (s span) present() bool      { return s.end > 0 }

// The skip functions return the position after the value that begins at b[i], or the position of
// the first wrong byte and the reason.

func skipValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, errCut
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '-' || isDigit(c):
		return skipNumber(b, i)
	case c == '{':
		return skipObject(b, i, depth)
	case c == '[':
		return skipArray(b, i, depth)
	case c == 't':
		return skipLiteral(b, i, "true")
	case c == 'f':
		return skipLiteral(b, i, "false")
	case c == 'n':
		return skipLiteral(b, i, "null")
	}
	return i, errValue
}

func skipObject(b []byte, i, depth int) (int, error) {
	if depth == 0 {
		return i, errTooNested
	}
	m := membersAt(b, i)
	for {
		_, more, err := m.next()
		if err != nil || !more {
			return m.at, err
		}
		if m.at, err = skipValue(b, m.at, depth-1); err != nil {
			return m.at, err
		}
	}
}

func skipArray(b []byte, i, depth int) (int, error) {
	if depth == 0 {
		return i, errTooNested
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for {
		var err error
		if i, err = skipValue(b, i, depth-1); err != nil {
			return i, err
		}
		i = skipSpace(b, i)
		if i >= len(b) {
			return i, errCut
		}
		switch b[i] {
		case ',':
			i = skipSpace(b, i+1)
		case ']':
			return i + 1, nil
		default:
			return i, errElement
		}
	}
}

// members iterates over the members of an object. next returns a key and sets at to the first byte
// of its value; the caller moves at past that value before it calls next again. After the last
// member at is the position after the brace, after an error that of the wrong byte.
type members struct {
	b     []byte
	at    int
	begun bool
}

// membersAt begins with the object whose opening brace is b[i].
func membersAt(b []byte, i int) members { return members{b: b, at: i + 1} }

func (m *members) next() (key span, more bool, err error) {
	b, i := m.b, skipSpace(m.b, m.at)
	if i < len(b) && b[i] == '}' {
		m.at = i + 1
		return span{}, false, nil
	}
	if m.begun {
		if i < len(b) && b[i] != ',' {
			m.at = i
			return span{}, false, errMember
		}
		i = skipSpace(b, i+1)
	}
	m.begun = true
	if i >= len(b) {
		m.at = len(b)
		return span{}, false, errCut
	}
	if b[i] != '"' {
		m.at = i
		return span{}, false, errKey
	}
	key.start = i
	if i, err = skipString(b, i); err != nil {
		m.at = i
		return span{}, false, err
	}
	key.end = i
	i = skipSpace(b, i)
	if i >= len(b) {
		m.at = i
		return span{}, false, errCut
	}
	if b[i] != ':' {
		m.at = i
		return span{}, false, errColon
	}
	m.at = skipSpace(b, i+1)
	return key, true, nil
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

func skipString(b []byte, i int) (int, error) {
	i++
	for {
		i = skipPlain(b, i)
		if i == len(b) {
			return i, errCut
		}
		switch b[i] {
		case '"':
			return i + 1, nil
		case '\\':
			if i+1 < len(b) && shortEscape[b[i+1]] {
				i += 2
				continue
			}
			var err error
			if i, err = skipUnicodeEscape(b, i); err != nil {
				return i, err
			}
		default:
			return i, errControl
		}
	}
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

// skipUnicodeEscape skips \uXXXX.
func skipUnicodeEscape(b []byte, i int) (int, error) {
	if i+1 < len(b) && b[i+1] != 'u' {
		return i + 1, errEscape
	}
	for k := i + 2; k < i+6; k++ {
		if k >= len(b) {
			return len(b), errCut
		}
		if hexDigit(b[k]) < 0 {
			return k, errEscape
		}
	}
	return i + 6, nil
}

func skipNumber(b []byte, i int) (int, error) {
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if n := skipDigits(b, i); n > i {
		i = n
	} else {
		return i, errNumber
	}
	if i < len(b) && b[i] == '.' {
		n := skipDigits(b, i+1)
		if n == i+1 {
			return n, errNumber
		}
		i = n
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		n := skipDigits(b, i)
		if n == i {
			return n, errNumber
		}
		i = n
	}
	return i, nil
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && isDigit(b[i]) {
		i++
	}
	return i
}

func skipLiteral(b []byte, i int, literal string) (int, error) {
	if len(b)-i < len(literal) || string(b[i:i+len(literal)]) != literal {
		return i, errLiteral
	}
	return i + len(literal), nil
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// valid reports whether b is exactly one JSON value.
func valid(b []byte, depth int) bool {
	i, err := skipValue(b, skipSpace(b, 0), depth)
	return err == nil && skipSpace(b, i) == len(b)
}

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
