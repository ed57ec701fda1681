package batchfile

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// inside returns a string literal without its quotes.
func inside(literal []byte) []byte { return literal[1 : len(literal)-1] }

// escaped reports whether the inside of a literal has escapes.
func escaped(inner []byte) bool { return bytes.IndexByte(inner, '\\') >= 0 }

// appendText decodes the inside of a valid string literal. Half a surrogate pair becomes three
// bytes as in WTF-8, not U+FFFD, so that two different strings never decode to the same bytes.
func appendText(dst, inner []byte) []byte {
	for len(inner) > 0 {
		k := bytes.IndexByte(inner, '\\')
		if k < 0 {
			return append(dst, inner...)
		}
		dst = append(dst, inner[:k]...)
		c := inner[k+1]
		inner = inner[k+2:]
		switch c {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := codeUnit(inner)
			inner = inner[4:]
			if utf16.IsSurrogate(r) {
				if len(inner) >= 6 && inner[0] == '\\' && inner[1] == 'u' {
					if pair := utf16.DecodeRune(r, codeUnit(inner[2:])); pair != utf8.RuneError {
						dst = utf8.AppendRune(dst, pair)
						inner = inner[6:]
						continue
					}
				}
				dst = append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
				continue
			}
			dst = utf8.AppendRune(dst, r)
		default: // quote, backslash, slash
			dst = append(dst, c)
		}
	}
	return dst
}

func codeUnit(hex []byte) rune {
	return hexDigit(hex[0])<<12 | hexDigit(hex[1])<<8 | hexDigit(hex[2])<<4 | hexDigit(hex[3])
}

// appendQuoted appends s as a JSON string literal. Invalid UTF-8 becomes U+FFFD.
func appendQuoted[S string | []byte](dst []byte, s S) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// textOf returns the text of a literal; nil for none. If it has escapes, the text is appended to
// scratch.
func textOf(key, scratch []byte) []byte {
	if key == nil {
		return nil
	}
	if inner := inside(key); escaped(inner) {
		return appendText(scratch, inner)
	}
	return inside(key)
}

// validPrefix returns the length of the longest prefix that is UTF-8.
func validPrefix(b []byte) int {
	if utf8.Valid(b) {
		return len(b)
	}
	n := 0
	for {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError && size <= 1 {
			return n
		}
		n += size
	}
}

// cutRune returns the number of bytes at the end of p that are the beginning of an incomplete
// character.
func cutRune(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if tail := p[len(p)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
