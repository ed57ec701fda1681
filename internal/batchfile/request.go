package batchfile

import (
	"hash/crc32"
	"math"
)

// request reads one line, which arrives in pieces. It keeps the positions of the fields and their
// first bytes, which is all that the scanner needs.
type request struct {
	object objectReader
	lineState
	heads []byte // first bytes of values, up to headBytes of each
}

// lineState is what a request knows of the current line.
type lineState struct {
	whole []byte // the line, if it is in one piece; fields are not copied then
	size  int    // bytes so far
	blank bool   // they are white space
	crc   uint32
	// notUTF8 is the position after the first byte that is not UTF-8. 0: there is none.
	notUTF8 int

	first    byte             // of the JSON value of the line
	span     span             // of that value, without the white space around it
	values   [fieldCount]span // by field
	repeated [fieldCount]bool // the key occurs more than once
	head     [fieldCount]span // position in heads
	inline   [fieldCount]int  // bytes of inline base64 data

	// elements counts those of the body's input, if it is an array, of which the first one begins
	// with firstElement.
	elements     int64
	firstElement byte

	outer, inner field // the current member of the line, and that of the body
	// copied is the one of these whose bytes are copied, from the position copyFrom of the piece
	// on.
	copied   field
	copyFrom int
	image    dataURLs
}

// Limits of strings in bytes, without quotes, escapes as written.
const (
	maxCustomID = 4096
	maxText     = 512 // of a method, a url or a model's name
)

// maxNumber is the length above which a number is ignored. Meaningful numbers are shorter.
const maxNumber = 64

// textLimit returns the limit of a field that is a string.
func textLimit(f field) int {
	if f == fieldCustomID {
		return maxCustomID
	}
	return maxText
}

// headBytes returns how many bytes of a value the scanner needs.
func headBytes(f field) int {
	switch f {
	case fieldCustomID, fieldMethod, fieldURL, fieldModel:
		return textLimit(f) + len(`""`)
	case fieldMaxTokens, fieldMaxCompletionTokens, fieldMaxOutputTokens:
		return maxNumber
	case fieldBody, fieldStream:
		return 1
	default:
		return prefixBytes
	}
}

const (
	// memberLevel is that of the body's members, elementLevel that of the elements of one.
	memberLevel  = 2
	elementLevel = 3
	// keyBytes suffices for the literal of every known key, even if each character is escaped.
	keyBytes = 192
)

func newRequest() *request {
	r := &request{}
	r.object = newObjectReader(r, maxDepth, keyBytes)
	r.object.level, r.object.anyValue = memberLevel, true
	return r
}

// reset prepares for another line.
func (r *request) reset() {
	r.object.reset()
	r.lineState = lineState{blank: true}
	r.heads = r.heads[:0]
}

// write reads the next piece. A piece ends with a complete character, unless it is the last one.
func (r *request) write(p []byte) {
	if valid := validPrefix(p); valid < len(p) && r.notUTF8 == 0 {
		r.notUTF8 = r.size + valid + 1
	}
	r.copyFrom = 0
	r.object.write(p)
	r.copy(p)
	if r.first != 0 {
		from, to := max(0, r.span.start-r.size), len(p)
		if r.span.end > 0 {
			to = max(0, r.span.end-r.size)
		}
		r.crc = crc32.Update(r.crc, castagnoli, p[min(from, to):to])
	}
	r.count(p)
}

// count counts the next piece without reading it.
func (r *request) count(p []byte) {
	r.blank = r.blank && isBlank(p)
	r.size += len(p)
}

// begin implements objectEvents.
func (r *request) begin(depth int, key []byte, first byte, at int) {
	switch depth {
	case 0:
		r.first, r.span.start = first, at
	case 1:
		r.outer = lineField(key)
		r.start(r.outer, first, at)
	case memberLevel:
		// The content of a second body does not count.
		if r.outer == fieldBody && !r.values[fieldBody].present() {
			r.inner = bodyField(key)
			r.start(r.inner, first, at)
		}
	case elementLevel:
		if r.elements++; r.elements == 1 {
			r.firstElement = first
		}
	}
}

// start begins to read a field, unless there was one of that name.
func (r *request) start(f field, first byte, at int) {
	if f == noField || r.values[f].present() {
		return
	}
	r.values[f].start = at
	if f == fieldInput && first == '[' {
		r.object.level = elementLevel
	}
	if r.whole != nil {
		return
	}
	r.head[f] = span{len(r.heads), len(r.heads)}
	if f == fieldBody { // its first byte shows the type; its members are copied
		r.heads = append(r.heads, first)
		r.head[f].end++
		return
	}
	r.copied, r.copyFrom, r.image = f, at-r.size, dataURLs{}
}

// copy copies what is needed of the current piece up to its end.
func (r *request) copy(piece []byte) {
	if r.copied == noField {
		return
	}
	b, head := piece[r.copyFrom:], &r.head[r.copied]
	r.heads = append(r.heads, b[:min(len(b), headBytes(r.copied)-head.len())]...)
	head.end = len(r.heads)
	if r.copied >= fieldTools {
		r.image.write(b)
	}
}

// end implements objectEvents.
func (r *request) end(depth, at int) {
	switch depth {
	case 0:
		r.span.end = at
	case 1:
		r.finish(&r.outer, at)
	case memberLevel:
		r.finish(&r.inner, at)
		r.object.level = memberLevel
	}
}

// finish ends the current field.
func (r *request) finish(current *field, at int) {
	f := *current
	if *current = noField; f == noField {
		return
	}
	if r.copied == f {
		r.copy(r.object.piece[:at-r.size])
		r.inline[f] = r.image.bytes
		r.copied = noField
	}
	if r.values[f].present() {
		r.repeated[f] = true
	} else {
		r.values[f].end = at
	}
}

// beginning returns at least the first headBytes of a field's value; empty if the field is absent.
func (r *request) beginning(f field) []byte {
	if r.whole != nil {
		return r.values[f].of(r.whole)
	}
	return r.head[f].of(r.heads)
}

// inlineBytes returns the number of bytes of base64 data in a field's value.
func (r *request) inlineBytes(f field) int {
	if r.whole == nil {
		return r.inline[f]
	}
	var d dataURLs
	d.write(r.beginning(f))
	return d.bytes
}

// prompt returns the size of the input that an engine will read, and the hash of its prefix.
func (r *request) prompt(e *Endpoint) (size int, prefix uint64) {
	hash, left := uint64(0), prefixBytes
	for _, f := range e.prompt {
		size += r.values[f].len() - r.inlineBytes(f)
		value := r.beginning(f)
		if n := min(len(value), left); e.prefix && n > 0 {
			hash = mix(hash, value[:n])
			left -= n
		}
	}
	return size, hash
}

func (r *request) maxTokens(e *Endpoint) uint32 {
	for _, f := range e.maxTokens {
		if r.values[f].len() > maxNumber {
			continue
		}
		if n := count(r.beginning(f)); n > 0 {
			return uint32(min(n, math.MaxUint32))
		}
	}
	return 0
}

// inputs counts the texts in the input of an embedding request. A string or an array of tokens is
// one text.
func (r *request) inputs() int64 {
	if r.firstElement != '"' && r.firstElement != '[' {
		return 1
	}
	return r.elements
}
