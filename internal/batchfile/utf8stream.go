package batchfile

import "unicode/utf8"

// utf8Stream checks that bytes that arrive in pieces are UTF-8.
type utf8Stream struct {
	tail  [utf8.UTFMax]byte // the first bytes of a character that continues in the next piece
	cut   int               // number of bytes in tail
	at    int               // bytes read, without tail
	wrong bool
}

func (u *utf8Stream) write(p []byte) {
	if u.wrong {
		return
	}
	for u.cut > 0 && len(p) > 0 {
		u.tail[u.cut] = p[0]
		u.cut++
		p = p[1:]
		if tail := u.tail[:u.cut]; utf8.FullRune(tail) {
			if _, n := utf8.DecodeRune(tail); n < len(tail) {
				u.wrong = true
				return
			}
			u.at, u.cut = u.at+u.cut, 0
		}
	}
	end := len(p) - cutRune(p)
	valid := validPrefix(p[:end])
	u.at += valid
	if valid < end {
		u.wrong = true
		return
	}
	u.cut += copy(u.tail[u.cut:], p[end:])
}

// finish returns the position of the first wrong byte, if there is one.
func (u *utf8Stream) finish() (at int, ok bool) {
	return u.at, !u.wrong && u.cut == 0
}

// cutRune returns how many bytes at the end of p are the beginning of an incomplete character.
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
