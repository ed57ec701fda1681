package batchfile

// excerpt keeps the first bytes of one part of a stream, which arrives in pieces.
type excerpt struct {
	most  int // bytes to keep; a byte more is kept of a part that is longer
	bytes []byte
	open  bool // the part is under way
	from  int  // position in the piece of the part's next byte
}

// reset forgets the part.
func (e *excerpt) reset() { e.bytes, e.open = e.bytes[:0], false }

// begin starts a new part at a position in the piece.
func (e *excerpt) begin(at int) { e.bytes, e.open, e.from = e.bytes[:0], true, at }

// nextPiece keeps the rest of the piece, before another takes its place.
func (e *excerpt) nextPiece(piece []byte) {
	if e.open {
		e.keep(piece[e.from:])
		e.from = 0
	}
}

// end closes the part before a position in the piece.
func (e *excerpt) end(piece []byte, at int) {
	e.keep(piece[e.from:at])
	e.open = false
}

func (e *excerpt) keep(b []byte) {
	e.bytes = append(e.bytes, b[:min(len(b), e.most+1-len(e.bytes))]...)
}

// whole reports whether all bytes of the part are kept.
func (e *excerpt) whole() bool { return len(e.bytes) <= e.most }
