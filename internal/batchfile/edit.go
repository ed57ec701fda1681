package batchfile

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// EditBody appends body, a JSON object, to dst with some of its members changed. Every other byte
// is unchanged.
//
// An override replaces the value of a member, in every occurrence if the key is repeated, or is
// added; null removes the member. A default is added if the body does not have the key and no
// override names it; null adds nothing. Added members come last, sorted by key, so that equal input
// gives equal bytes.
func EditBody(dst, body []byte, defaults, overrides map[string]json.RawMessage) ([]byte, error) {
	e := newEditor(defaults, overrides, maxDepth)
	_, _ = e.Write(body) // finish returns its error
	pieces, err := e.finish()
	if err != nil {
		return dst, err
	}
	for _, p := range pieces {
		if p.Text == nil {
			dst = append(dst, body[p.At:p.At+p.Length]...)
		} else {
			dst = append(dst, p.Text...)
		}
	}
	return dst, nil
}

// Piece is a part of an edited body: Length bytes of the original from At on, or Text.
type Piece struct {
	At, Length int64
	Text       []byte // nil: a part of the original
}

// Size returns the length of an edited body.
func Size(pieces []Piece) (n int64) {
	for _, p := range pieces {
		n += p.Length + int64(len(p.Text))
	}
	return n
}

// EditPieces is EditBody for a body that is too large for memory. It reads the body once and
// returns the pieces that make up the edited body. If has is not nil, it is called with every key
// of the body.
func EditPieces(
	body io.Reader, defaults, overrides map[string]json.RawMessage, has func(key string),
) ([]Piece, error) {
	e := newEditor(defaults, overrides, answerDepth)
	e.has = has
	if _, err := io.CopyBuffer(e, io.MultiReader(body), make([]byte, 32<<10)); err != nil {
		return nil, fmt.Errorf("edit body: %w", err)
	}
	return e.finish()
}

// editor edits a body that arrives in pieces.
type editor struct {
	defaults, overrides map[string]json.RawMessage
	has                 func(string)
	object              objectReader

	pieces   []Piece
	present  map[string]bool // the keys to edit that the body has
	some     bool            // a member was kept
	replaced bool            // the current value is replaced
	// kept is the position from which the original is kept, up to the next comma or brace, or
	// notKept.
	kept int
}

const notKept = -1

func newEditor(defaults, overrides map[string]json.RawMessage, depth int) *editor {
	n := len(defaults) + len(overrides)
	e := &editor{defaults: defaults, overrides: overrides,
		present: make(map[string]bool, n), pieces: make([]Piece, 0, 1+2*n)}
	e.object = newObjectReader(e, depth, maxKept)
	return e
}

// Write reads the next piece of the body.
func (e *editor) Write(p []byte) (int, error) {
	e.object.write(p)
	return len(p), e.object.err()
}

// finish returns the pieces of the edited body.
func (e *editor) finish() ([]Piece, error) {
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("edit body: %w", err)
	}
	if at, err := e.object.finish(0); err != nil {
		return nil, fmt.Errorf("edit body: byte %d: %w", at+1, err)
	}
	e.keep(e.object.base)
	return e.pieces, nil
}

// begin implements objectEvents.
func (e *editor) begin(depth int, key []byte, _ byte, at int) {
	switch depth {
	case 0:
		e.copy(0, at+1)
		e.kept = notKept
	case 1:
		e.keep(e.object.from - len(","))
		e.member(key, e.object.from, at)
	}
}

// end implements objectEvents.
func (e *editor) end(depth, at int) {
	switch {
	case depth == 0:
		brace := at - len("}")
		e.keep(brace)
		e.text(e.appendMissing(nil, e.some))
		e.kept = brace
	case depth == 1 && e.replaced:
		e.kept, e.replaced = at, false
	}
}

// member begins a member of the body. from is the position after the brace or comma before it,
// value the position of its value.
func (e *editor) member(key []byte, from, value int) {
	var override json.RawMessage
	overridden := false
	if key != nil { // nil: too long to be one of the edited keys
		name := textOf(key, nil)
		override, overridden = e.override(name)
		if e.has != nil {
			e.has(string(name))
		}
	}
	if overridden && isNull(override) {
		return
	}
	if e.some {
		from -= len(",")
	}
	e.some, e.replaced, e.kept = true, overridden, from
	if overridden {
		e.keep(value)
		e.text(override)
	}
}

// keep adds the original from kept to a position.
func (e *editor) keep(at int) {
	if e.kept != notKept {
		e.copy(e.kept, at)
		e.kept = notKept
	}
}

func (e *editor) copy(from, to int) {
	if from == to {
		return
	}
	at, length := int64(from), int64(to-from)
	if n := len(e.pieces); n > 0 && e.pieces[n-1].Text == nil &&
		e.pieces[n-1].At+e.pieces[n-1].Length == at {
		e.pieces[n-1].Length += length
		return
	}
	e.pieces = append(e.pieces, Piece{At: at, Length: length})
}

func (e *editor) text(s []byte) {
	if len(s) == 0 {
		return
	}
	if n := len(e.pieces); n > 0 && e.pieces[n-1].Text != nil {
		e.pieces[n-1].Text = append(e.pieces[n-1].Text, s...)
		return
	}
	e.pieces = append(e.pieces, Piece{Text: slices.Clone(s)})
}

// check returns an error if a new value is not JSON.
func (e *editor) check() error {
	for _, values := range [...]map[string]json.RawMessage{e.defaults, e.overrides} {
		for name, value := range values {
			if !valid(value, maxDepth) {
				return fmt.Errorf("the new value of %q is not JSON", name)
			}
		}
	}
	return nil
}

// override returns the value that replaces that of a member, if one does, and records that the
// body has the member.
func (e *editor) override(name []byte) (value json.RawMessage, overridden bool) {
	value, overridden = e.overrides[string(name)]
	if _, known := e.defaults[string(name)]; known || overridden {
		e.present[string(name)] = true
	}
	return value, overridden
}

// appendMissing appends the new members that the body does not have, sorted by key. some reports
// whether a member precedes them.
func (e *editor) appendMissing(dst []byte, some bool) []byte {
	for _, name := range e.missing() {
		value, overridden := e.overrides[name]
		if !overridden {
			value = e.defaults[name]
		}
		if some {
			dst = append(dst, ',')
		}
		some = true
		dst = append(appendQuoted(dst, name), ':')
		dst = append(dst, value...)
	}
	return dst
}

func (e *editor) missing() []string {
	var names []string
	for name, value := range e.overrides {
		if !e.present[name] && !isNull(value) {
			names = append(names, name)
		}
	}
	for name, value := range e.defaults {
		if _, overridden := e.overrides[name]; !overridden && !e.present[name] && !isNull(value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func isNull(value json.RawMessage) bool {
	i := skipSpace(value, 0)
	return i < len(value) && value[i] == 'n'
}
