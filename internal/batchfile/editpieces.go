package batchfile

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

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
	e := pieceEditor{edits: edits{defaults, overrides, map[string]bool{}}, has: has}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("edit body: %w", err)
	}
	e.json = newJSONStream(&e, answerDepth, maxKept)
	e.json.wantObject = true
	if _, err := io.CopyBuffer(&e, io.MultiReader(body), make([]byte, 32<<10)); err != nil {
		return nil, fmt.Errorf("edit body: %w", err)
	}
	e.json.finish()
	if err := e.json.err(); err != nil {
		return nil, fmt.Errorf("edit body: %w", err)
	}
	e.keep(e.json.at)
	return e.pieces, nil
}

// pieceEditor edits a body that arrives in pieces.
type pieceEditor struct {
	edits
	has  func(string)
	json jsonStream

	pieces   []Piece
	some     bool // a member was kept
	replaced bool // the current value is replaced
	// kept is the position from which the original is kept, up to the next comma or brace, or
	// notKept.
	kept int
}

const notKept = -1

// Write reads the next piece of the body.
func (e *pieceEditor) Write(p []byte) (int, error) {
	e.json.write(p)
	return len(p), e.json.err()
}

// begin implements streamEvents.
func (e *pieceEditor) begin(depth int, key []byte, _ byte, at int) {
	switch depth {
	case 0:
		e.copy(0, at+1)
		e.kept = notKept
	case 1:
		e.keep(e.json.from - len(","))
		e.member(key, e.json.from, at)
	}
}

// end implements streamEvents.
func (e *pieceEditor) end(depth, at int) {
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
func (e *pieceEditor) member(key []byte, from, value int) {
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
		e.text([]byte(","))
	}
	e.some, e.replaced, e.kept = true, overridden, from
	if overridden {
		e.keep(value)
		e.text(override)
	}
}

// keep adds the original from kept to a position.
func (e *pieceEditor) keep(at int) {
	if e.kept != notKept {
		e.copy(e.kept, at)
		e.kept = notKept
	}
}

func (e *pieceEditor) copy(from, to int) {
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

func (e *pieceEditor) text(s []byte) {
	if len(s) == 0 {
		return
	}
	if n := len(e.pieces); n > 0 && e.pieces[n-1].Text != nil {
		e.pieces[n-1].Text = append(e.pieces[n-1].Text, s...)
		return
	}
	e.pieces = append(e.pieces, Piece{Text: slices.Clone(s)})
}
