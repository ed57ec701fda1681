package inline

import (
	"io"
	"net/http"
)

// edit is a change of a body: text stands in place of the bytes of a span.
type edit struct {
	at   span
	text []byte
}

// outBody is a body on its way to a runner: parts of what is held, and then the rest.
type outBody struct {
	parts [][]byte
	live  *live // nil: there is no rest
}

// Read implements io.Reader.
func (o *outBody) Read(p []byte) (int, error) {
	for len(o.parts) > 0 {
		n := copy(p, o.parts[0])
		if o.parts[0] = o.parts[0][n:]; len(o.parts[0]) == 0 {
			o.parts = o.parts[1:]
		}
		if n > 0 {
			return n, nil
		}
		if len(p) == 0 {
			return 0, nil
		}
	}
	if o.live == nil {
		return 0, io.EOF
	}
	return o.live.Read(p)
}

// Close drops what was not read. The transport calls it when it needs no more.
func (o *outBody) Close() error {
	o.parts, o.live = nil, nil
	return nil
}

// out returns the body as a runner gets it, and its length; -1: unknown. edits are in order and
// within what is held, but for that of the salt.
func (b *body) out(model []byte, salt *salt) (*outBody, int64) {
	var edits []edit
	if model != nil {
		edits = append(edits, edit{b.scan.modelAt, model})
	}
	length := b.length
	switch {
	case salt == nil:
	case b.rest != nil:
		length = -1 // the rest may have a salt of the user
	default:
		edits = inOrder(append(edits, salt.edit(b.scan)))
	}
	o := &outBody{}
	at := 0
	for _, e := range edits {
		o.parts = append(o.parts, b.held[at:e.at.from], e.text)
		if at = e.at.to; length >= 0 {
			length += int64(len(e.text) - (e.at.to - e.at.from))
		}
	}
	o.parts = append(o.parts, b.held[at:])
	if b.rest != nil {
		o.live = &live{body: b, salt: salt, left: b.limit - int64(len(b.held))}
	} else if length < 0 {
		length = 0
		for _, p := range o.parts {
			length += int64(len(p))
		}
	}
	return o, length
}

func inOrder(edits []edit) []edit {
	if len(edits) == 2 && edits[1].at.from < edits[0].at.from {
		edits[0], edits[1] = edits[1], edits[0]
	}
	return edits
}

// live passes on the rest of a body as it comes. It checks each piece first and keeps one byte
// back, so that a server never gets all of a body with a fault.
type live struct {
	body *body
	salt *salt // nil: the body is not changed
	left int64 // bytes that the body may still have
	back []byte
	out  []byte // what was read and not passed on
	buf  []byte
	err  error
}

// liveRead is the size of the reads of a rest.
const liveRead = 32 << 10

// Read implements io.Reader.
func (l *live) Read(p []byte) (int, error) {
	for len(l.out) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		l.fill()
	}
	n := copy(p, l.out)
	l.out = l.out[n:]
	return n, nil
}

// fill reads the next piece.
func (l *live) fill() {
	if l.buf == nil {
		l.buf = make([]byte, 1+liveRead)
	}
	s := l.body.scan
	piece := l.buf[1:]
	n, err := l.body.rest.Read(piece)
	piece = piece[:n]
	if l.left -= int64(n); l.left < 0 {
		l.fail(tooLarge(l.body.limit))
		return
	}
	base := s.base
	if f := s.read(piece); f != nil {
		l.fail(f)
		return
	}
	if l.body.lateTier() {
		l.fail(badBody("member", "service_tier", "The member 'service_tier' comes after more than "+
			"%d bytes of the body; put it before the prompt.", holdBytes))
		return
	}
	ended := err == io.EOF
	if ended {
		if f := s.finish(); f != nil {
			l.fail(f)
			return
		}
	} else if err != nil {
		l.fail(&failure{status: http.StatusBadRequest, kind: invalidRequest, reason: "unreadable",
			message: "The request's body could not be read completely."})
		return
	}
	if l.salt != nil {
		if piece, err = l.salt.apply(piece, base, s); err != nil {
			l.fail(badBody("member", "cache_salt", "%v", err))
			return
		}
	}
	l.pass(piece, ended)
}

// pass makes a piece, but for its last byte, what Read returns next.
func (l *live) pass(piece []byte, ended bool) {
	all := piece
	if len(l.back) > 0 {
		all = append(append(make([]byte, 0, len(piece)+1), l.back...), piece...)
	}
	if ended {
		l.out, l.err, l.back = all, io.EOF, nil
		return
	}
	if n := len(all); n > 0 {
		l.out, l.back = all[:n-1], append(l.back[:0:0], all[n-1])
	}
}

// fail ends the body. The transport then ends the request, whose body remains incomplete.
func (l *live) fail(f *failure) {
	l.err, l.out = f, nil
	l.body.failed <- f
}
