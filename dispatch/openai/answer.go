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

// Answer is the answer to a request. Send parses it once; callers need not look into its body.
type Answer struct {
	// Sent reports that the server may have received the request, since a part of it was written to
	// a connection. It holds even if there is no answer.
	Sent       bool
	Status     int    // of HTTP
	RequestID  string // as the server sent it
	RetryAfter time.Duration
	Report     Report

	// Body is a part of the scratch. Large, if not nil, holds the body of a good answer that does
	// not fit in memory; the caller closes it.
	Body  []byte
	Large *Large

	// Object reports that a good answer is one whole JSON object, and Listed that it has the list
	// that answers of its endpoint have. Without both it is of another server, or broken.
	Object, Listed bool
	// Foreign reports that the body of an error is not one of an API, as with a page in HTML.
	Foreign bool
	// Usage is what the answer reports; zero: nothing.
	Usage batchfile.Usage
	// Texts is the number of texts that the usage of a streamed answer counts; zero: it was not
	// streamed, or reports no usage.
	Texts int
}

var (
	// errTooLarge reports that an answer is longer than Config.MaxAnswer.
	errTooLarge = errors.New("answer too large")

	errNoObject = errors.New("the upstream's answer is not a JSON object")
	errNoList   = errors.New("the upstream's answer is none of its endpoint")
)

// NotKept is the error of a good answer for which there is no space. It is no fault of the server.
type NotKept struct {
	// Bytes is the size of the answer or, unless Whole, of the part that was read.
	Bytes int64
	Whole bool
	Err   error
}

// notKept returns the error for an answer of which a number of bytes were read.
func notKept(response *http.Response, read int64, err error) *NotKept {
	if response.ContentLength >= 0 {
		return &NotKept{Bytes: response.ContentLength, Whole: true, Err: err}
	}
	return &NotKept{Bytes: read, Err: err}
}

func (e *NotKept) Error() string {
	more := ""
	if !e.Whole {
		more = " or more"
	}
	return fmt.Sprintf("keep an answer of %d bytes%s in a temporary file: %v", e.Bytes, more, e.Err)
}

func (e *NotKept) Unwrap() error { return e.Err }

const (
	// maxError limits the bytes that are kept of the body of an error.
	maxError = 64 << 10
	// maxRequestID limits the bytes that are kept of a request id.
	maxRequestID = 512
)

// readError reads the body of an answer whose status is no success. It cuts a long one, and says so
// in it.
func readError(response *http.Response, scratch *Scratch) ([]byte, error) {
	body, complete, err := readInto(response, scratch, maxError)
	if err != nil || complete {
		return body, err
	}
	body = body[:min(len(body), maxError)]
	return fmt.Appendf(body, "… (cut by tidefill: the answer was longer than %d bytes)", len(body)),
		nil
}

// readAnswer reads the body of a good answer: into the scratch or, if it is large or memory is
// short, into a file.
func (c *Client) readAnswer(
	ctx context.Context, path string, response *http.Response, scratch *Scratch, a *Answer,
) error {
	limit := c.maxAnswer(path)
	endpoint, _ := batchfile.LookupEndpoint(path)
	if response.ContentLength > limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d", errTooLarge, response.ContentLength,
			limit)
	}
	body, complete, err := readInto(response, scratch, limit)
	switch {
	case err != nil:
		return err
	case int64(len(body)) > limit:
		return tooLarge(limit)
	case complete:
		a.Body = body
		a.Usage, _, a.Object, a.Listed = batchfile.ReadAnswer(body, endpoint.Lists...)
		return nil
	}
	file, err := c.cfg.Spool(ctx)
	if err != nil {
		return notKept(response, int64(len(body)), err)
	}
	large := &Large{File: file}
	if a.Usage, err = large.fill(response, scratch, limit, endpoint.Lists); err != nil {
		return errors.Join(err, file.Close())
	}
	a.Large, a.Object, a.Listed = large, true, true
	return nil
}

func tooLarge(limit int64) error { return fmt.Errorf("%w: over %d bytes", errTooLarge, limit) }

// readInto reads a body into the scratch as far as limit and memory allow. complete reports that
// this was all. Of a body that is longer than the limit it reads one byte more than that.
func readInto(
	response *http.Response, scratch *Scratch, limit int64,
) (body []byte, complete bool, err error) {
	scratch.answer = scratch.answer[:0]
	// One byte more than the body has, to find its end without growing.
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
