package batchfile

import "fmt"

// maxWalkedKey bounds the literal of a key that an ObjectWalker reports. A name of 42 letters fits
// if each is an escape of 6 bytes.
const maxWalkedKey = 256

// ObjectVisitor receives an object that an ObjectWalker reads, and the values in it. Positions are
// those of Write's bytes, counted from the first one.
type ObjectVisitor interface {
	// Begin reports the first byte of the object (depth 0), of a member's value (1), or of a value
	// in that (2), and so on. The key is decoded and valid only during the call. It is nil in an
	// array, and if its literal is longer than 256 bytes.
	Begin(depth int, key []byte, first byte, at int)
	// End reports the position after the object or the value.
	End(depth, at int)
}

// ObjectWalker checks that the bytes written to it, in pieces of any size, are one JSON object. It
// reports its values down to a level and holds no more than one key.
type ObjectWalker struct {
	json objectReader
	to   ObjectVisitor
}

// NewObjectWalker returns a walker that reports values with at most level containers around them.
// More than limit nested containers are a fault.
func NewObjectWalker(to ObjectVisitor, level, limit int) *ObjectWalker {
	w := &ObjectWalker{to: to}
	w.json = newObjectReader(w, limit, maxWalkedKey)
	w.json.level = int16(level)
	return w
}

// Reset prepares for another object.
func (w *ObjectWalker) Reset() { w.json.reset() }

// Write reads the next piece. Its error is the reason why the bytes can't be an object; every later
// Write returns it too. Values before the fault have been reported.
func (w *ObjectWalker) Write(p []byte) (int, error) {
	w.json.write(p)
	if w.json.fault != 0 {
		return len(p), w.fault()
	}
	return len(p), nil
}

// Finish returns an error unless the bytes so far are one object, with only white space around it.
func (w *ObjectWalker) Finish() error {
	if _, err := w.json.finish(0); err != nil {
		return w.fault()
	}
	return nil
}

// fault words the fault for an object that is not a line of a file.
func (w *ObjectWalker) fault() error {
	reason := w.json.fault.Error()
	switch w.json.fault {
	case errCut:
		reason = "the body ends before the object does"
	case errTrailing:
		reason = "more follows the object"
	}
	return fmt.Errorf("byte %d: %s", w.json.faultAt+1, reason)
}

// begin implements objectEvents.
func (w *ObjectWalker) begin(depth int, key []byte, first byte, at int) {
	w.to.Begin(depth, textOf(key, nil), first, at)
}

// end implements objectEvents.
func (w *ObjectWalker) end(depth, at int) { w.to.End(depth, at) }
