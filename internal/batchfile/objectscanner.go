package batchfile

import "slices"

// ObjectScanner checks that the bytes written to it, in pieces of any size, are one JSON object, as
// IsObject does for bytes in memory. It holds at most MaxKept bytes of a key and of the value of
// one member.
type ObjectScanner struct {
	json   objectReader
	member string
	found  bool
	lists  []string
	listed bool
	value  excerpt
}

// maxKept bounds the bytes kept of a key or a value that arrives in pieces.
const maxKept = 16 << 10

// NewObjectScanner returns a scanner that keeps the value of a member of the object, and notes
// whether one of the members that lists names is a list.
func NewObjectScanner(member string, lists ...string) *ObjectScanner {
	s := &ObjectScanner{member: member, lists: lists, value: excerpt{max: maxKept}}
	s.json = newObjectReader(s, answerDepth, maxKept)
	return s
}

// Write reads the next piece. Its error is the reason why the bytes can't be an object; every later
// Write returns it too.
func (s *ObjectScanner) Write(p []byte) (int, error) {
	s.json.write(p)
	s.value.nextPiece(p)
	return len(p), s.json.err()
}

// Complete reports whether the bytes so far are one object, with only white space around it.
func (s *ObjectScanner) Complete() bool { return s.json.complete() }

// Value returns the first value of the member, or nil if there is none or it is longer than MaxKept
// bytes.
func (s *ObjectScanner) Value() []byte {
	if !s.found || s.value.open || !s.value.complete() {
		return nil
	}
	return s.value.bytes
}

// Listed reports whether one of the members that are to be lists is one.
func (s *ObjectScanner) Listed() bool { return s.listed }

// begin implements objectEvents.
func (s *ObjectScanner) begin(depth int, key []byte, kind byte, at int) {
	if depth == 1 && key != nil && kind == '[' && slices.Contains(s.lists, string(inside(key))) {
		s.listed = true
	}
	if depth == 1 && key != nil && !s.found && string(inside(key)) == s.member {
		s.found = true
		s.value.begin(at - s.json.base)
	}
}

// end implements objectEvents.
func (s *ObjectScanner) end(depth, at int) {
	if depth == 1 && s.value.open {
		s.value.end(s.json.piece, at-s.json.base)
	}
}
