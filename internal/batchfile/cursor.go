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
	depth int // how much deeper values may nest
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
	if c.enter('{', errNoObject) {
		return ObjectCursor{c: c, members: membersAt(c.text, c.at)}
	}
	return ObjectCursor{c: c}
}

// Array enters the next value, which must be an array.
func (c *Cursor) Array() ArrayCursor {
	if c.enter('[', errValue) {
		return ArrayCursor{c: c, at: -1}
	}
	return ArrayCursor{c: c}
}

func (c *Cursor) enter(first byte, otherwise error) bool {
	switch {
	case c.err != nil:
	case c.Kind() != first:
		c.err = otherwise
	case c.depth == 0:
		c.err = errTooNested
	default:
		c.depth--
		return true
	}
	return false
}

// ObjectCursor moves a cursor from member to member of an object.
type ObjectCursor struct {
	c       *Cursor
	members members
	key     []byte
}

// Next moves the cursor to the value of the next member. It skips the value of the member before,
// unless the caller has read it. After the last member the cursor is past the object.
func (o *ObjectCursor) Next() bool {
	c := o.c
	if c.err != nil {
		return false
	}
	if o.members.begun {
		if c.at == o.members.at && c.Skip() == nil {
			return false
		}
		o.members.at = c.at
	}
	key, more, err := o.members.next()
	c.at, c.err = o.members.at, err
	if err != nil {
		return false
	}
	if !more {
		c.depth++
		return false
	}
	o.key = key.of(c.text)
	return true
}

// Key returns the key of the member that Next has found, decoded.
func (o *ObjectCursor) Key() []byte { return textOf(o.key, nil) }

// ArrayCursor moves a cursor from element to element of an array.
type ArrayCursor struct {
	c  *Cursor
	at int // of the last element; -1: before the first
}

// Next moves the cursor to the next element. It skips the element before, unless the caller has
// read it. After the last element the cursor is past the array.
func (a *ArrayCursor) Next() bool {
	c := a.c
	if c.err != nil {
		return false
	}
	first := a.at < 0
	if first {
		c.at++
	} else if c.at == a.at && c.Skip() == nil {
		return false
	}
	c.at = skipSpace(c.text, c.at)
	switch {
	case c.at >= len(c.text):
		c.err = errCut
		return false
	case c.text[c.at] == ']':
		c.at++
		c.depth++
		return false
	case first:
	case c.text[c.at] != ',':
		c.err = errElement
		return false
	default:
		c.at = skipSpace(c.text, c.at+1)
	}
	a.at = c.at
	return true
}
