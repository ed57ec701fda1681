package work

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Line is a line of a batch, with what is needed to send it.
type Line struct {
	index  batchfile.Line // its record in the line index
	number uint32         // in its batch
	input  *sourceInput
	object []byte // its JSON, while it is in memory; nil: it is read from the blob
	damage error  // found by fetch: the file does not contain what was uploaded

	rejected *rejected // nil: no answer has failed the check of the batch

	requests uint16 // that were sent for it and that a runner may have received
	earlier  bool   // its result was in the journal when that was opened
	recorded bool   // its result is in the journal since
}

// Number returns the number of the line in its batch, from 0.
func (l *Line) Number() uint32 { return l.number }

// Model returns the name of the model.
func (l *Line) Model() string { return l.input.models[l.index.Model] }

// URL returns the endpoint.
func (l *Line) URL() string { return l.input.urls[l.index.URL] }

// PrefixHash returns a hash of the beginning of the prompt; 0: the endpoint has no use for it.
func (l *Line) PrefixHash() uint64 { return l.index.PrefixHash }

// Size returns the size of the line in its file, in bytes.
func (l *Line) Size() int64 { return int64(l.index.Length) }

// Requests returns the number of requests that were sent for the line, and that a runner may
// have received.
func (l *Line) Requests() uint16 { return l.requests }

// CountRequest counts a request that was sent for the line. Only its sender calls it.
func (l *Line) CountRequest() {
	if l.requests < math.MaxUint16 {
		l.requests++
	}
}

// Record notes that the journal holds the line's result. Its input is not needed any more.
func (l *Line) Record(inputs *Share) {
	l.recorded = true
	l.release(inputs)
}

// FileID returns the id of the file that the line is in.
func (l *Line) FileID() string { return l.input.FileID }

// release gives back the memory that the line's object takes.
func (l *Line) release(inputs *Share) {
	inputs.Give(int64(len(l.object)))
	l.object = nil
	l.AskPlainly(inputs)
}

// setDamage notes that the line is damaged, if err says so, and returns any other error.
func (l *Line) setDamage(err error) error {
	if errors.Is(err, batchfile.ErrDamaged) {
		l.damage = err
		return nil
	}
	return err
}

// CustomID returns the line's custom_id as it is in the file, with quotes. For a damaged one it
// returns a name for the line.
func (l *Line) CustomID() ([]byte, error) {
	if l.object != nil {
		return l.index.VerifiedID(l.index.CustomID(l.object)), nil
	}
	literal, err := readSpan(l.input.blob, l.index.Offset+int64(l.index.IDOffset),
		int(l.index.IDLength))
	if errors.Is(err, io.EOF) { // the file is cut
		literal, err = nil, nil
	}
	return l.index.VerifiedID(literal), err
}

// Body is the body of a line's request.
type Body struct {
	Size   int64
	InFile bool             // reads of it may fail
	Open   func() io.Reader // returns a new reader of it
}

// Body returns the edited body.
func (l *Line) Body(e Edits) (Body, error) {
	if l.damage != nil {
		return Body{}, l.damage
	}
	switch {
	case l.object == nil && e.none():
		return Body{Size: int64(l.index.BodyLength), InFile: true,
			Open: func() io.Reader { return l.inBlob() }}, nil
	case l.object == nil:
		pieces, err := batchfile.EditPieces(l.inBlob(), e.defaults, e.overrides, nil)
		return Body{Size: batchfile.Size(pieces), InFile: true, Open: l.joining(pieces)}, err
	case e.none():
		return inMemory(l.asked(l.index.Body(l.object))), nil
	}
	edited, err := batchfile.EditBody(make([]byte, 0, int(l.index.BodyLength)+256),
		l.index.Body(l.object), e.defaults, e.overrides)
	return inMemory(l.asked(edited)), err
}

func inMemory(body []byte) Body {
	return Body{Size: int64(len(body)),
		Open: func() io.Reader { return bytes.NewReader(body) }}
}

// inBlob reads the body from the blob.
func (l *Line) inBlob() *io.SectionReader {
	return io.NewSectionReader(l.input.blob, l.index.Offset+int64(l.index.BodyOffset),
		int64(l.index.BodyLength))
}

// joining returns a function that opens an edited body, of which most pieces are in the blob.
func (l *Line) joining(pieces []batchfile.Piece) func() io.Reader {
	return func() io.Reader {
		readers := make([]io.Reader, len(pieces))
		for i, p := range pieces {
			if readers[i] = bytes.NewReader(p.Text); p.Text == nil {
				readers[i] = io.NewSectionReader(l.inBlob(), p.At, p.Length)
			}
		}
		return io.MultiReader(readers...)
	}
}

// Has reports whether the body has a member.
func (l *Line) Has(member string) (found bool, err error) {
	return l.HasAny(func(name string) bool { return name == member })
}

// HasAny reports whether the body has a member with a name that is among those.
func (l *Line) HasAny(among func(name string) bool) (found bool, err error) {
	if l.object == nil {
		_, err := batchfile.EditPieces(l.inBlob(), nil, nil, func(name string) {
			found = found || among(name)
		})
		return found, err
	}
	for name := range batchfile.Members(l.index.Body(l.object)) {
		found = found || among(name)
	}
	return found, nil
}

func readSpan(from io.ReaderAt, at int64, n int) ([]byte, error) {
	span := make([]byte, n)
	if got, err := from.ReadAt(span, at); got < n {
		return nil, errors.Join(fmt.Errorf("read %d bytes of input at %d", n, at), err)
	}
	return span, nil
}
