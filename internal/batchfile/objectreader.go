package batchfile

import "fmt"

// objectReader checks that bytes that arrive in pieces of any size are one JSON object, and reports
// its members, or values down to the level of the syntax. It holds no more than the literal of one
// key.
type objectReader struct {
	syntax
	anyValue bool // need not be an object
	on       objectEvents
	piece    []byte  // the current piece
	key      excerpt // the literal of the key that was read last
}

// objectEvents receives an object and its members. Positions count from the first byte of the first
// piece.
type objectEvents interface {
	// begin reports the first byte of the object (depth 0), of the value of a member (1) or of one
	// in that, and the literal of its key, which is valid only during the call. The key is nil if
	// there is none, or if it is too long to be kept.
	begin(depth int, key []byte, first byte, at int)
	// end reports the position after the object or the value.
	end(depth int, at int)
}

// newObjectReader returns a reader of an object whose depth is at most limit. It keeps literals of
// keys up to maxKey bytes.
func newObjectReader(on objectEvents, limit, maxKey int) objectReader {
	return objectReader{on: on, key: excerpt{max: maxKey},
		syntax: syntax{level: 1, limit: int16(limit)}}
}

// reset prepares for another object.
func (o *objectReader) reset() {
	o.key.reset()
	o.syntax = syntax{level: o.level, limit: o.limit, outer: o.outer[:0]}
}

// write reads the next piece.
func (o *objectReader) write(p []byte) {
	o.piece = p
	for i, ev := 0, ends; ev != cut && o.fault == 0; {
		switch i, ev = o.run(p, i); ev {
		case begins:
			o.begin(p[i], i)
		case ends:
			o.on.end(int(o.depth), o.base+i)
		case cut, faulty: // the loop ends
		}
	}
	if o.depth > 0 && o.depth <= o.level && !o.inArray() && o.state <= wantColon {
		o.keepKey() // the value has not begun
	}
	o.piece = nil
	o.base += len(p)
}

func (o *objectReader) begin(first byte, i int) {
	if o.depth == 0 && first != '{' && !o.anyValue {
		o.fail(errNoObject, i)
		return
	}
	o.on.begin(int(o.depth), o.currentKey(), first, o.base+i)
}

// currentKey returns the literal of the key of the value that begins.
func (o *objectReader) currentKey() []byte {
	if o.depth == 0 || o.inArray() {
		return nil
	}
	var key []byte
	if from := o.keyAt - o.base; from >= 0 {
		key = o.piece[from : o.keyEnd-o.base]
	} else {
		o.keepKey()
		key = o.key.bytes
	}
	if len(key) > o.key.max {
		return nil
	}
	return key
}

// keepKey keeps the bytes of the current key that are in the current piece.
func (o *objectReader) keepKey() {
	from, to := o.keyAt-o.base, o.keyEnd-o.base
	if o.state == inKey {
		to = len(o.piece)
	}
	if from >= 0 {
		o.key.reset()
	}
	if from = max(from, 0); from < to {
		o.key.keep(o.piece[from:to])
	}
}

// complete reports whether the bytes so far are one object, with only white space around it.
func (o *objectReader) complete() bool { return o.fault == 0 && o.state == wantNothing }

// err returns the reason why the bytes so far can't begin an object, or nil if they can.
func (o *objectReader) err() error {
	if o.fault == 0 {
		return nil
	}
	return fmt.Errorf("byte %d: %w", o.faultAt+1, o.fault)
}
