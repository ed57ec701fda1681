package batchfile

import (
	"bytes"
	"hash/crc32"
	"unicode/utf8"
)

// longLine reads a request line that arrives in pieces and is too long to be held. It keeps where the fields lie and how
// they begin, which is all that the scanner reads of a line that is held whole.
type longLine struct {
	request
	json jsonStream
	text utf8Stream

	size  int // bytes so far, without the byte order mark
	blank bool

	piece   []byte // the piece under way, which begins at base
	base    int
	outer   field // the member of the line that is being read
	inner   field // the member of the body that is being read
	taken   field // of these two the one whose bytes are taken
	from    int   // the next byte to take, in the piece
	opening byte  // the first of its bytes
	image   dataURLs
}

func newLongLine() *longLine {
	l := &longLine{blank: true}
	l.json = newJSONStream(l, maxDepth)
	return l
}

func (l *longLine) reset() {
	heads := l.heads[:0]
	*l = longLine{json: l.json, blank: true}
	l.json.reset()
	l.heads = heads
}

// write reads the next piece.
func (l *longLine) write(p []byte) {
	l.blank = l.blank && skipSpace(p, 0) == len(p)
	l.text.write(p)
	l.piece, l.base, l.from = p, l.size, 0
	l.json.write(p)
	l.take(len(p))
	l.addToSum(p)
	l.piece = nil
	l.size += len(p)
}

// addToSum adds the bytes of the object in the piece to its checksum.
func (l *longLine) addToSum(p []byte) {
	if l.first == 0 { // white space so far
		return
	}
	from, to := max(0, l.object.start-l.base), len(p)
	if l.object.end > 0 {
		to = max(0, l.object.end-l.base)
	}
	if from < to {
		l.crc = crc32.Update(l.crc, castagnoli, p[from:to])
	}
}

// skip counts the next piece without reading it.
func (l *longLine) skip(p []byte) {
	l.blank = l.blank && skipSpace(p, 0) == len(p)
	l.size += len(p)
}

// begin implements streamEvents.
func (l *longLine) begin(depth int, key []byte, first byte, at int) {
	switch depth {
	case 0:
		l.object, l.first = span{start: at}, first
	case 1:
		if key == nil {
			return
		}
		l.outer = lineField(key)
		if !l.values[l.outer].present() {
			l.start(l.outer, first, at)
		}
	case 2:
		// A second body is a repeated key; what stands in it does not count.
		if key == nil || l.outer != fieldBody || l.values[fieldBody].present() || l.heads[l.head[fieldBody].start] != '{' {
			return
		}
		l.inner = bodyField(key)
		if !l.values[l.inner].present() {
			l.start(l.inner, first, at)
		}
	case 3:
		if l.taken == fieldInput && l.inner == fieldInput && l.opening == '[' {
			if l.elements++; l.elements == 1 {
				l.firstElement = first
			}
		}
	}
}

// start begins to take the bytes of a field.
func (l *longLine) start(f field, first byte, at int) {
	if f == noField {
		return
	}
	l.starts[f] = at
	l.head[f] = span{len(l.heads), len(l.heads)}
	l.taken, l.from, l.opening, l.image = f, at-l.base, first, dataURLs{}
	if f == fieldBody { // its members are taken; of itself the first byte says the type
		l.heads = append(l.heads, first)
		l.head[f].end = len(l.heads)
		l.taken = noField
	}
}

// take adds the bytes of the piece up to one of them to the field under way.
func (l *longLine) take(to int) {
	if l.taken == noField {
		return
	}
	b, head := l.piece[l.from:to], &l.head[l.taken]
	l.from = to
	l.heads = append(l.heads, b[:min(len(b), headBytes(l.taken)-head.len())]...)
	head.end = len(l.heads)
	if l.taken.prompt() {
		l.image.write(b)
	}
}

// end implements streamEvents.
func (l *longLine) end(depth int, at int) {
	switch {
	case depth == 0:
		l.object.end = at
	case depth == 1 && l.outer != noField:
		l.finish(l.outer, at)
		l.outer = noField
	case depth == 2 && l.inner != noField:
		l.finish(l.inner, at)
		l.inner = noField
	}
}

func (l *longLine) finish(f field, at int) {
	if l.taken == f {
		l.take(at - l.base)
		l.inline[f] = l.image.bytes
		l.taken = noField
	}
	l.set(f, span{l.starts[f], at})
}

// fault ends the line and returns the position of the first byte that is not UTF-8, or not JSON.
func (l *longLine) fault() (at int, notUTF8 bool, err error) {
	if at, ok := l.text.finish(); !ok {
		return at, true, nil
	}
	at, err = l.json.finish()
	return at, false, err
}

// utf8Stream checks that bytes in pieces are UTF-8.
type utf8Stream struct {
	tail  [utf8.UTFMax]byte // the beginning of a character that was cut
	cut   int
	at    int // bytes seen, without the tail
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
	whole := len(p) - cutRune(p)
	if !utf8.Valid(p[:whole]) {
		u.at, u.wrong = u.at+invalidUTF8(p), true
		return
	}
	u.at += whole
	u.cut += copy(u.tail[u.cut:], p[whole:])
}

// finish returns the position of the first wrong byte, if there is one.
func (u *utf8Stream) finish() (at int, ok bool) {
	return u.at, !u.wrong && u.cut == 0
}

// cutRune returns how many bytes at the end of p are the beginning of a character that goes on.
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

const dataURL = ";base64,"

// dataURLs counts, in pieces, what inlineData counts.
type dataURLs struct {
	bytes   int
	matched int // bytes of dataURL
	pending int // bytes of base64 whose closing quote has not come
	inside  bool
}

func (d *dataURLs) write(p []byte) {
	for len(p) > 0 {
		if d.inside {
			end := bytes.IndexByte(p, '"')
			if end < 0 {
				d.pending += len(p)
				return
			}
			*d = dataURLs{bytes: d.bytes + d.pending + end}
			p = p[end:]
			continue
		}
		if d.matched == 0 {
			i := bytes.IndexByte(p, dataURL[0])
			if i < 0 {
				return
			}
			p = p[i:]
		}
		switch p[0] {
		case dataURL[d.matched]:
			d.matched++
		case dataURL[0]:
			d.matched = 1
		default:
			d.matched = 0
		}
		if p = p[1:]; d.matched == len(dataURL) {
			d.inside = true
		}
	}
}
