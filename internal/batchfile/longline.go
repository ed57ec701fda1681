package batchfile

import "hash/crc32"

// longLine reads a request line that arrives in pieces and is too long for memory. It keeps the
// positions of the fields and their first bytes, which is all that the scanner needs.
type longLine struct {
	request
	json jsonStream
	text utf8Stream

	size  int // bytes so far, without the byte order mark
	blank bool

	piece []byte // the current piece
	base  int    // position of its first byte

	outer field // the current member of the line
	inner field // the current member of the body

	// captured is the one of these two whose bytes are copied, from the position from of the piece
	// on; opening is its first byte.
	captured field
	from     int
	opening  byte
	image    dataURLs
}

func newLongLine() *longLine {
	l := &longLine{blank: true}
	l.json = newJSONStream(l, maxDepth, keyBytes)
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
	l.capture(len(p))
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
		// A second body is a repeated key; its content does not count.
		if key == nil || l.outer != fieldBody || l.values[fieldBody].present() ||
			l.heads[l.head[fieldBody].start] != '{' {
			return
		}
		l.inner = bodyField(key)
		if !l.values[l.inner].present() {
			l.start(l.inner, first, at)
		}
	case 3:
		if l.captured == fieldInput && l.inner == fieldInput && l.opening == '[' {
			if l.elements++; l.elements == 1 {
				l.firstElement = first
			}
		}
	}
}

// start begins to copy the bytes of a field.
func (l *longLine) start(f field, first byte, at int) {
	if f == noField {
		return
	}
	l.starts[f] = at
	l.head[f] = span{len(l.heads), len(l.heads)}
	l.captured, l.from, l.opening, l.image = f, at-l.base, first, dataURLs{}
	if f == fieldBody { // its members are copied; its first byte shows the type
		l.heads = append(l.heads, first)
		l.head[f].end = len(l.heads)
		l.captured = noField
	}
}

// capture copies the bytes of the piece before a position to the captured field.
func (l *longLine) capture(to int) {
	if l.captured == noField {
		return
	}
	b, head := l.piece[l.from:to], &l.head[l.captured]
	l.from = to
	l.heads = append(l.heads, b[:min(len(b), headBytes(l.captured)-head.len())]...)
	head.end = len(l.heads)
	if l.captured.prompt() {
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
	if l.captured == f {
		l.capture(at - l.base)
		l.inline[f] = l.image.bytes
		l.captured = noField
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
