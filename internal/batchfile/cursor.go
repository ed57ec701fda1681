package batchfile

// Cursor reads a JSON text value by value in one pass, and checks its syntax on the way. After the
// first fault its methods return nothing more. It is a plain value: a copy returns to where it was
// made.
//
//	c := NewCursor(text)
//	for o := c.Object(); o.Next(); {
//		switch string(o.Key()) {
//		case "usage":
//			usage, ok = c.Usage()
//		}
//	}
//	valid := c.End()
type Cursor struct {
	text  []byte
	at    int // of the next value
	depth int // levels that values may still nest
	err   error
}

// NewCursor returns a cursor at the value of a text.
func NewCursor(text []byte) Cursor {
	return Cursor{text: text, at: skipSpace(text, 0), depth: answerDepth}
}

// Kind returns the first byte of the next value: '{', '[', '"', 't', 'f', 'n', '-' or a digit in a
// text without faults.
func (c *Cursor) Kind() byte {
	if c.err != nil || c.at >= len(c.text) {
		return 0
	}
	return c.text[c.at]
}

// At returns the position of the next value, or of the end of the last one.
func (c *Cursor) At() int { return c.at }

// From returns the bytes from a position up to where the cursor is.
func (c *Cursor) From(at int) []byte { return c.text[at:c.at] }

// Skip moves past the next value and returns its bytes.
func (c *Cursor) Skip() []byte {
	if c.err != nil {
		return nil
	}
	start := c.at
	if c.at, c.err = skipValue(c.text, start, c.depth); c.err != nil {
		return nil
	}
	return c.text[start:c.at]
}

// End reports whether the text was one value without a fault, which the cursor has read.
func (c *Cursor) End() bool {
	return c.err == nil && c.depth == answerDepth && skipSpace(c.text, c.at) == len(c.text)
}

// Err returns the first fault.
func (c *Cursor) Err() error { return c.err }

// Object enters the next value, which must be an object.
func (c *Cursor) Object() ObjectCursor {
	c.enter('{', errNoObject)
	return ObjectCursor{containerCursor{c: c, state: wantFirstKey}}
}

// Array enters the next value, which must be an array.
func (c *Cursor) Array() ArrayCursor {
	c.enter('[', errValue)
	return ArrayCursor{containerCursor{c: c, state: wantFirstElement, kind: 1}}
}

func (c *Cursor) enter(bracket byte, otherwise syntaxError) {
	switch {
	case c.err != nil:
	case c.Kind() != bracket:
		c.err = otherwise
	case c.depth == 0:
		c.err = errTooNested
	default:
		c.at++
		c.depth--
	}
}

// ObjectCursor moves a cursor from member to member of an object.
type ObjectCursor struct{ containerCursor }

// Key returns the key of the member that Next has found, decoded.
func (o *ObjectCursor) Key() []byte { return textOf(o.key, nil) }

// ArrayCursor moves a cursor from element to element of an array.
type ArrayCursor struct{ containerCursor }

// containerCursor moves a cursor from value to value of an object or array.
type containerCursor struct {
	c     *Cursor
	at    int    // of the last value
	key   []byte // of the last value, in an object
	state state  // of the syntax between the values
	kind  uint64 // as in the syntax
}

// Next moves the cursor to the next value. It skips the value before, unless the caller has read
// it. After the last value the cursor is past the container.
func (o *containerCursor) Next() bool {
	c := o.c
	if c.err != nil {
		return false
	}
	if o.state == wantNext && c.at == o.at && c.Skip() == nil {
		return false
	}
	s := syntax{limit: 1, depth: 1, state: o.state, kinds: o.kind}
	i, ev := s.between(c.text, c.at)
	switch ev {
	case begins:
		o.state, o.at, o.key = wantNext, i, c.text[s.keyAt:s.keyEnd]
		c.at = i
	case ends:
		c.at = i
		c.depth++
	default:
		c.at, c.err = s.finish(i)
	}
	return ev == begins
}
