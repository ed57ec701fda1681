package batchfile

import "math"

// request holds the positions of the fields of one line.
type request struct {
	line     []byte
	object   span             // the JSON value of the line, without the white space around it
	values   [fieldCount]span // by field
	repeated [fieldCount]bool // the key occurs more than once
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

// parse reads a line, which must not be blank. On an error it returns the position of the wrong
// byte. If the line is valid JSON but no object, every field is absent.
func (r *request) parse(line []byte) (int, error) {
	*r = request{line: line}
	c := Cursor{text: line, at: skipSpace(line, 0), depth: maxDepth}
	r.object.start = c.at
	if c.Kind() == '{' {
		r.parseLine(&c)
	} else {
		c.Skip()
	}
	r.object.end = c.at
	if end := skipSpace(line, c.at); c.err == nil && end < len(line) {
		return end, errTrailing
	}
	return c.at, c.err
}

func (r *request) parseLine(c *Cursor) {
	o := c.Object()
	for o.Next() {
		start, f := c.at, fieldOf(lineFields, o.key)
		if f == fieldBody && !r.values[fieldBody].present() && c.Kind() == '{' {
			r.parseBody(c)
		} else {
			c.Skip()
		}
		r.set(f, span{start, c.at})
	}
}

func (r *request) parseBody(c *Cursor) {
	o := c.Object()
	for o.Next() {
		start, f := c.at, fieldOf(bodyFields, o.key)
		c.Skip()
		r.set(f, span{start, c.at})
	}
}

func (r *request) set(f field, value span) {
	if f == noField {
		return
	}
	if r.values[f].present() {
		r.repeated[f] = true
		return
	}
	r.values[f] = value
}

// value returns the JSON of a field; empty if the field is absent.
func (r *request) value(f field) []byte { return r.values[f].of(r.line) }

// prompt returns the size of the input that an engine will read, and the hash of its prefix.
func (r *request) prompt(e *Endpoint) (size int, prefix uint64) {
	hash, left := uint64(0), prefixBytes
	for _, f := range e.prompt {
		value := r.value(f)
		size += len(value) - inlineData(value)
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
		if n := count(r.value(f)); n > 0 {
			return uint32(min(n, math.MaxUint32))
		}
	}
	return 0
}

// inputs counts the texts in the input of an embedding request. A string or an array of tokens is
// one text.
func (r *request) inputs() (n int64) {
	c := NewCursor(r.value(fieldInput))
	if c.Kind() != '[' {
		return 1
	}
	for a := c.Array(); a.Next(); n++ {
		if kind := c.Kind(); n == 0 && kind != '"' && kind != '[' {
			return 1
		}
	}
	return max(n, 1)
}
