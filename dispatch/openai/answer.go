package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Answer is what came back.
type Answer struct {
	// Sent says that the server may have received the request, whatever came back: a part of it was
	// written to a connection.
	Sent       bool
	Status     int
	RequestID  string // as the server gave it
	Body       []byte // a part of the scratch
	RetryAfter time.Duration
	// Large is the body of a good answer that memory can't hold; nil: it is Body. Whoever gets the
	// answer closes it.
	Large *Large
}

// Large is an answer in a file: a JSON object in the form that it has within a result line.
type Large struct {
	File  File
	Size  int64
	Usage batchfile.Usage
}

// File is a temporary file, which is gone when it is closed. Writes append.
type File interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Errors that concern an answer's body.
var (
	// ErrTooLarge: the answer is longer than Config.MaxAnswer.
	ErrTooLarge = errors.New("answer too large")
	// errNoObject: the answer is no JSON object.
	errNoObject = errors.New("the upstream's answer is not a JSON object")
	// ErrNotKept: there is nowhere to put the answer, which is no fault of the server.
	ErrNotKept = errors.New("the answer can't be kept")
)

const (
	// mostError bounds what is kept of an answer that is an error.
	mostError = 64 << 10
	// mostRequestID bounds what is kept of a request id.
	mostRequestID = 512
)

// readError reads the body of an answer that is no success. What is too long is cut, and says so.
func readError(response *http.Response, scratch *Scratch) ([]byte, error) {
	body, whole, err := readInto(response, scratch, mostError)
	if err != nil || whole {
		return body, err
	}
	body = body[:min(len(body), mostError)]
	return fmt.Appendf(body, "… (cut by tidefill: the answer was longer than %d bytes)", len(body)),
		nil
}

// readAnswer reads the body of a good answer: into the scratch or, if it is large or memory is
// short, into a file.
func (c *Client) readAnswer(
	ctx context.Context, response *http.Response, scratch *Scratch, limit int64,
) ([]byte, *Large, error) {
	if response.ContentLength > limit {
		return nil, nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge,
			response.ContentLength, limit)
	}
	body, whole, err := readInto(response, scratch, limit)
	switch {
	case err != nil:
		return nil, nil, err
	case int64(len(body)) > limit:
		return nil, nil, tooLarge(limit)
	case whole:
		return body, nil, nil
	}
	file, err := c.cfg.Spool(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	large := &Large{File: file}
	if err := large.fill(response, scratch, limit); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return nil, large, nil
}

func tooLarge(limit int64) error { return fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit) }

// readInto reads a body into the scratch as far as its limit and memory allow; whole says that this
// was all. Of a body that is longer than the limit it has read a byte more.
func readInto(
	response *http.Response, scratch *Scratch, limit int64,
) (body []byte, whole bool, err error) {
	scratch.answer = scratch.answer[:0]
	// One byte more than there will be, so that the end is seen without growing.
	if n := response.ContentLength; n >= 0 && !scratch.grow(int(min(n, limit))+1) {
		scratch.grow(smallAnswer)
	}
	for {
		buf := scratch.answer
		if len(buf) == cap(buf) {
			if !scratch.grow(len(buf) + 1) {
				return buf, false, nil
			}
			buf = scratch.answer
		}
		n, err := response.Body.Read(buf[len(buf):min(int64(cap(buf)), limit+1)])
		scratch.answer = buf[:len(buf)+n]
		switch {
		case int64(len(scratch.answer)) > limit:
			return scratch.answer, false, nil
		case err == io.EOF:
			return scratch.answer, true, nil
		case err != nil:
			return nil, false, fmt.Errorf("read answer: %w", err)
		}
	}
}

// fill moves what the scratch holds of a body to the file, and the rest of the body after it. From
// then on a server that takes its time holds no memory but a small buffer.
func (l *Large) fill(response *http.Response, scratch *Scratch, limit int64) error {
	checked := batchfile.NewObjectScanner("usage")
	kept := batchfile.NewBodyWriter(l.File)
	beginning := append([]byte(nil), scratch.answer[:min(len(scratch.answer), 200)]...)
	total := int64(0)
	add := func(piece []byte) error {
		if total += int64(len(piece)); total > limit {
			return tooLarge(limit)
		}
		if _, err := checked.Write(piece); err != nil {
			return l.noObject(response, total, beginning)
		}
		if _, err := kept.Write(piece); err != nil {
			return fmt.Errorf("%w: %w", ErrNotKept, err)
		}
		return nil
	}
	for begun := scratch.answer; len(begun) > 0; {
		n := min(len(begun), smallAnswer)
		if err := add(begun[:n]); err != nil {
			return err
		}
		begun = begun[n:]
	}
	scratch.Trim(smallAnswer)
	scratch.grow(smallAnswer)
	buf := scratch.answer[:cap(scratch.answer)]
	for {
		n, err := response.Body.Read(buf)
		if addErr := add(buf[:n]); addErr != nil {
			return addErr
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
	}
	if !checked.Complete() {
		return l.noObject(response, total, beginning)
	}
	if err := kept.Close(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotKept, err)
	}
	l.Size = kept.Bytes()
	l.Usage, _ = batchfile.ParseUsage(checked.Value())
	return nil
}

func (l *Large) noObject(response *http.Response, total int64, beginning []byte) error {
	return fmt.Errorf("%w; it was at least %d bytes with status %d, beginning %q", errNoObject,
		total, response.StatusCode, beginning)
}
