package batchfile

import (
	"encoding/json"
	"fmt"
	"io"
)

// Piece is a part of an edited body: Length bytes of the original from At on, or a text of its own.
type Piece struct {
	At, Length int64
	Text       []byte // nil: of the original
}

// Size is how many bytes the pieces have together.
func Size(pieces []Piece) (n int64) {
	for _, p := range pieces {
		n += p.Length + int64(len(p.Text))
	}
	return n
}

// EditPieces is EditBody for a body that is too large to be held in memory: it reads the body once and says which parts of it
// make up the edited one. has is called with every key that the body has; nil: nobody asks.
func EditPieces(body io.Reader, defaults, overrides map[string]json.RawMessage, has func(key string)) ([]Piece, error) {
	e := pieceEditor{edits: edits{defaults, overrides, map[string]bool{}}, has: has}
	if err := e.check(); err != nil {
		return nil, fmt.Errorf("edit body: %w", err)
	}
	scanner := ObjectScanner{Member: e.member}
	if _, err := io.CopyBuffer(&scanner, io.MultiReader(body), make([]byte, 32<<10)); err != nil {
		return nil, fmt.Errorf("edit body: %w", err)
	}
	if !scanner.Whole() {
		return nil, fmt.Errorf("edit body: %w", errCut)
	}
	return e.finish(&scanner), nil
}

type pieceEditor struct {
	edits
	has    func(string)
	pieces []Piece
	begun  bool
	some   bool
}

func (e *pieceEditor) member(m Member) {
	if !e.begun {
		e.begun = true
		e.copy(0, m.From)
	}
	var override json.RawMessage
	overridden := false
	if m.Key != nil { // a longer key is none that anybody names
		name := textOf(m.Key, nil)
		override, overridden = e.override(name)
		if e.has != nil {
			e.has(string(name))
		}
	}
	if overridden && isNull(override) {
		return
	}
	if e.some {
		e.text(",")
	}
	e.some = true
	if !overridden {
		e.copy(m.From, m.Next)
		return
	}
	e.copy(m.From, m.Value)
	e.text(string(override))
	e.copy(m.End, m.Next)
}

// finish adds what the body does not have, and its end.
func (e *pieceEditor) finish(s *ObjectScanner) []Piece {
	if !e.begun {
		e.copy(0, s.opened+1)
	}
	if missing := e.appendMissing(nil, e.some); len(missing) > 0 {
		e.text(string(missing))
	}
	e.copy(s.closed, s.at)
	return e.pieces
}

func (e *pieceEditor) copy(from, to int64) {
	if from == to {
		return
	}
	if n := len(e.pieces); n > 0 && e.pieces[n-1].Text == nil && e.pieces[n-1].At+e.pieces[n-1].Length == from {
		e.pieces[n-1].Length += to - from
		return
	}
	e.pieces = append(e.pieces, Piece{At: from, Length: to - from})
}

func (e *pieceEditor) text(s string) {
	if n := len(e.pieces); n > 0 && e.pieces[n-1].Text != nil {
		e.pieces[n-1].Text = append(e.pieces[n-1].Text, s...)
		return
	}
	e.pieces = append(e.pieces, Piece{Text: []byte(s)})
}
