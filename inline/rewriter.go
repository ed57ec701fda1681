package inline

import (
	"bytes"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// rewriter replaces the model in an answer that arrives in pieces: the member of the object or, in
// a stream, of the object of each event. Of the Responses API, events have it within `response`.
// All other bytes stay, also those of what is no object.
type rewriter struct {
	model  []byte // in quotes
	stream bool

	walker *batchfile.ObjectWalker
	base   int // position in the object of the current piece
	within bool
	faulty bool // the bytes are no object: the rest stays as it is
	inside bool // the value that is replaced goes on
	open   bool // the walker reads the value of model

	// Of a stream.
	matched int  // bytes of the field's name that were read at the beginning of the row
	field   bool // the row is the data of an event
	other   bool // the row is something else

	piece   []byte
	kept    int // position in the piece from which it is kept
	changed bool
	out     []byte
}

// maxAnswerDepth limits the nested values of an answer, as for lines.
const maxAnswerDepth = 10_000

func newRewriter(model []byte, responses, stream bool) *rewriter {
	r := &rewriter{model: model, stream: stream}
	level := 1
	if responses {
		level = 2
	}
	r.walker = batchfile.NewObjectWalker(r, level, maxAnswerDepth)
	return r
}

// take moves what was changed to p.
func (r *rewriter) take(p []byte) int {
	n := copy(p, r.out)
	if r.out = r.out[n:]; len(r.out) == 0 {
		r.out = nil // a stream waits for its next token without it
	}
	return n
}

// put reads the next piece. It reports whether the piece is changed; then take moves what stands in
// its place.
func (r *rewriter) put(p []byte) (changed bool) {
	r.changed = r.inside
	for len(p) > 0 {
		part := p
		if r.stream {
			if end := bytes.IndexByte(p, '\n'); end >= 0 {
				part = p[:end]
			}
		}
		p = p[len(part):]
		r.row(part)
		if len(p) > 0 {
			r.copy(p[:1])
			p = p[1:]
			r.endRow()
		}
	}
	if !r.changed {
		r.out = nil
	}
	return r.changed
}

// row reads a part of a row, or of the only object.
func (r *rewriter) row(p []byte) {
	for r.stream && !r.field && !r.other && len(p) > 0 {
		if p[0] != dataField[r.matched] {
			r.other = true
			break
		}
		r.copy(p[:1])
		p = p[1:]
		r.matched++
		r.field = r.matched == len(dataField)
	}
	if r.other || r.faulty {
		r.copy(p)
		return
	}
	r.piece, r.kept = p, 0
	if r.inside {
		r.kept = len(p)
	}
	_, err := r.walker.Write(p)
	r.copy(p[r.kept:])
	r.base += len(p)
	if err != nil {
		r.faulty = true
	}
}

func (r *rewriter) endRow() {
	r.matched, r.field, r.other = 0, false, false
	r.walker.Reset()
	r.base, r.within, r.faulty, r.inside, r.open = 0, false, false, false, false
}

func (r *rewriter) copy(p []byte) { r.out = append(r.out, p...) }

// Begin implements batchfile.ObjectVisitor.
func (r *rewriter) Begin(depth int, key []byte, first byte, at int) {
	if depth == 1 {
		r.within = first == '{' && string(key) == "response"
	}
	if r.open || first != '"' || string(key) != "model" || depth != 1 && !(depth == 2 && r.within) {
		return
	}
	r.open, r.inside, r.changed = true, true, true
	r.copy(r.piece[r.kept : at-r.base])
	r.copy(r.model)
	r.kept = len(r.piece)
}

// End implements batchfile.ObjectVisitor.
func (r *rewriter) End(_, at int) {
	if r.open {
		r.open, r.inside, r.kept = false, false, at-r.base
	}
}
