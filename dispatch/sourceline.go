package dispatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// sourceLine is a line of a batch, with what is needed to send it.
type sourceLine struct {
	batchfile.Line
	number uint32 // in its batch
	input  *sourceInput
	object []byte // its JSON, while it is in memory; nil: it is read from the blob
	damage error  // found by fetch: the file does not contain what was uploaded

	requests uint16 // that were sent for it and that a runner may have received
	recorded bool   // its result is in the journal
}

func (l *sourceLine) model() string { return l.input.models[l.Model] }
func (l *sourceLine) url() string   { return l.input.urls[l.URL] }

// release gives back the memory that the line's object takes.
func (l *sourceLine) release(inputs *share) {
	inputs.Give(int64(len(l.object)))
	l.object = nil
}

// setDamage notes that the line is damaged, if err says so, and returns any other error.
func (l *sourceLine) setDamage(err error) error {
	if errors.Is(err, batchfile.ErrDamaged) {
		l.damage = err
		return nil
	}
	return err
}

// customID returns the line's custom_id as it is in the file, with quotes. For a damaged one it
// returns a name for the line.
func (l *sourceLine) customID() ([]byte, error) {
	if l.object != nil {
		return l.VerifiedID(l.CustomID(l.object)), nil
	}
	literal, err := readSpan(l.input.blob, l.Offset+int64(l.IDOffset), int(l.IDLength))
	if errors.Is(err, io.EOF) { // the file is cut
		literal, err = nil, nil
	}
	return l.VerifiedID(literal), err
}

// body returns the size of the edited body and a function that opens it for reading.
func (l *sourceLine) body(e edits) (size int64, open func() io.ReadCloser, err error) {
	if l.damage != nil {
		return 0, nil, l.damage
	}
	switch {
	case l.object == nil && e.none():
		size = int64(l.BodyLength)
		return size, func() io.ReadCloser { return openai.FileBody(l.inBlob(), size) }, nil
	case l.object == nil:
		pieces, err := batchfile.EditPieces(l.inBlob(), e.defaults, e.overrides, nil)
		size = batchfile.Size(pieces)
		return size, l.joining(pieces, size), err
	case e.none():
		return int64(l.BodyLength), reading(l.Body(l.object)), nil
	}
	edited, err := batchfile.EditBody(make([]byte, 0, int(l.BodyLength)+256), l.Body(l.object),
		e.defaults, e.overrides)
	return int64(len(edited)), reading(edited), err
}

// inBlob reads the body from the blob.
func (l *sourceLine) inBlob() *io.SectionReader {
	return io.NewSectionReader(l.input.blob, l.Offset+int64(l.BodyOffset), int64(l.BodyLength))
}

// joining returns a function that opens an edited body of a size, of which most pieces are in the
// blob.
func (l *sourceLine) joining(pieces []batchfile.Piece, size int64) func() io.ReadCloser {
	return func() io.ReadCloser {
		readers := make([]io.Reader, len(pieces))
		for i, p := range pieces {
			if readers[i] = bytes.NewReader(p.Text); p.Text == nil {
				readers[i] = io.NewSectionReader(l.inBlob(), p.At, p.Length)
			}
		}
		return openai.FileBody(io.MultiReader(readers...), size)
	}
}

// has reports whether the body has a member.
func (l *sourceLine) has(member string) (found bool, err error) {
	return l.hasAny(func(name string) bool { return name == member })
}

// hasAny reports whether the body has a member with a name that is among those.
func (l *sourceLine) hasAny(among func(name string) bool) (found bool, err error) {
	if l.object == nil {
		_, err := batchfile.EditPieces(l.inBlob(), nil, nil, func(name string) {
			found = found || among(name)
		})
		return found, err
	}
	for name := range batchfile.Members(l.Body(l.object)) {
		found = found || among(name)
	}
	return found, nil
}

func reading(body []byte) func() io.ReadCloser {
	return func() io.ReadCloser { return io.NopCloser(bytes.NewReader(body)) }
}

func readSpan(from io.ReaderAt, at int64, n int) ([]byte, error) {
	span := make([]byte, n)
	if got, err := from.ReadAt(span, at); got < n {
		return nil, errors.Join(fmt.Errorf("read %d bytes of input at %d", n, at), err)
	}
	return span, nil
}
