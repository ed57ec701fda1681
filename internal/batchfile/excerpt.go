package batchfile

// excerpt keeps the first bytes of one part of a stream that arrives in pieces.
type excerpt struct {
	max   int // bytes to keep; of a longer part, one byte more is kept
	bytes []byte
	open  bool // the part has begun and not ended
	from  int  // position in the current piece of the part's next byte
}

// reset drops the part.
func (e *excerpt) reset() { e.bytes, e.open = e.bytes[:0], false }

// begin starts a new part at a position in the piece.
func (e *excerpt) begin(at int) { e.bytes, e.open, e.from = e.bytes[:0], true, at }

// nextPiece keeps the rest of the current piece. Call it before the next piece arrives.
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
	e.bytes = append(e.bytes, b[:min(len(b), e.max+1-len(e.bytes))]...)
}

// complete reports whether all bytes of the part are kept.
func (e *excerpt) complete() bool { return len(e.bytes) <= e.max }
