package openai

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrUnreadable reports that a request's body could not be read while it was sent, which is no
// fault of the server.
var ErrUnreadable = errors.New("the request's body can't be read")

// fileBody is a body whose reads may fail.
type fileBody struct {
	from io.Reader
	left int64
	err  error // of the last read, but for the end of the body
}

// FileBody returns a body for Request.NewBody that is read from a file or another server, of size
// bytes. If it can't be read, Send closes the connection and fails with ErrUnreadable. Bodies in
// memory need no FileBody: net/http writes those together with the header.
func FileBody(from io.Reader, size int64) io.ReadCloser { return &fileBody{from: from, left: size} }

func (b *fileBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.left -= int64(n)
	switch {
	case err == io.EOF && b.left > 0:
		b.err = fmt.Errorf("%w: its last %d bytes are missing", ErrUnreadable, b.left)
	case err != nil && err != io.EOF:
		b.err = fmt.Errorf("%w: %w", ErrUnreadable, err)
	default:
		return n, err
	}
	return n, b.err
}

func (b *fileBody) Close() error { return nil }

// unreadable returns why the body of a request could not be read; nil: it could. No other goroutine
// reads the body. net/http hides the cause of that error.
func unreadable(req *http.Request) error {
	if b, ok := req.Body.(*fileBody); ok {
		return b.err
	}
	return nil
}
