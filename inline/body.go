package inline

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	// holdBytes is the size up to which a body is held until its answer begins, so that it can be
	// sent to another runner. A prompt of 64,000 tokens fits.
	holdBytes = 256 << 10
	// firstRead is the size of the first buffer for a body of unknown length.
	firstRead = 4 << 10
	// retryBusy is the Retry-After of a request for whose body there is no memory.
	retryBusy = time.Second
)

// body is the body of a request: the part that is held, and the rest, which has not been read.
type body struct {
	scan   *scan
	held   []byte
	length int64     // -1: unknown
	rest   io.Reader // nil: all of it is held
	limit  int64
	// tier is the service_tier that was read before the rest.
	tier string

	memory   share
	reserved int64
	// failed is why the rest was not read to its end. The goroutine that sends the body sets it
	// before the body's Read returns an error.
	failed chan *failure
}

// readBody reads a body: all of it if it is small or its model comes late, otherwise until its
// model is known. release must be called.
func readBody(w http.ResponseWriter, r *http.Request, limit int64, m share) (*body, *failure) {
	b := &body{scan: newScan(), length: r.ContentLength, limit: limit, memory: m}
	if b.length > limit {
		return b, tooLarge(limit)
	}
	size := min(firstRead, limit+1)
	if b.length >= 0 {
		size = min(b.length, holdBytes) + 1 // 1: the read that finds the end
	}
	if f := b.grow(size); f != nil {
		return b, f
	}
	for {
		if len(b.held) == cap(b.held) {
			next := int64(2 * cap(b.held))
			if b.length >= 0 {
				next = min(next, b.length+1)
			}
			if f := b.grow(min(next, limit+1)); f != nil {
				return b, f
			}
		}
		n, err := r.Body.Read(b.held[len(b.held):cap(b.held)])
		piece := b.held[len(b.held) : len(b.held)+n]
		b.held = b.held[:len(b.held)+n]
		if int64(len(b.held)) > limit {
			return b, tooLarge(limit)
		}
		if f := b.scan.read(piece); f != nil {
			return b, f
		}
		switch {
		case err == io.EOF:
			return b, b.scan.finish()
		case err != nil:
			return b, unreadable(r, err)
		case b.streams():
			b.rest, b.failed, b.tier = r.Body, make(chan *failure, 1), b.scan.tier
			return b, nil
		}
	}
}

// streams reports whether the rest of the body is passed on as it comes: the model is known, and
// what remains is not small.
func (b *body) streams() bool {
	return b.scan.modelAt.to > 0 && len(b.held) >= holdBytes &&
		(b.length < 0 || b.length-int64(len(b.held)) > holdBytes)
}

// grow makes room for size bytes in all.
func (b *body) grow(size int64) *failure {
	if !b.memory.take(size) {
		return &failure{status: http.StatusServiceUnavailable, kind: serverError, code: "busy",
			message: "The server holds too many bytes of requests (inline.memory); send the " +
				"request again later.", retryAfter: retryBusy, reason: "memory"}
	}
	grown := make([]byte, len(b.held), size)
	copy(grown, b.held)
	b.held = grown
	b.memory.give(b.reserved)
	b.reserved = size
	return nil
}

// release ends the use of the memory.
func (b *body) release() {
	b.memory.give(b.reserved)
	b.held, b.reserved = nil, 0
}

// resendable reports whether the body can be sent once more.
func (b *body) resendable() bool { return b.rest == nil && b.held != nil }

// fault returns why the rest was not read to its end, once the body's Read has returned an error;
// nil: there is no fault of the body.
func (b *body) fault() *failure {
	select {
	case f := <-b.failed:
		return f
	default:
		return nil
	}
}

// lateTier reports whether a service_tier that matters came with the rest, when its class was
// decided already.
func (b *body) lateTier() bool {
	return b.tier == "" && b.scan.tier != "" && b.scan.tier != tierAuto &&
		b.scan.tier != tierDefault
}

func tooLarge(limit int64) *failure {
	return &failure{status: http.StatusRequestEntityTooLarge, kind: invalidRequest,
		message: fmt.Sprintf("The request's body is over the limit of %d bytes.", limit),
		reason:  "too_large"}
}

// unreadable returns the answer to a body that could not be read to its end.
func unreadable(r *http.Request, err error) *failure {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &failure{status: http.StatusRequestTimeout, kind: invalidRequest,
			code: "body_timeout", reason: "slow",
			message: "The request's body was not received in time; send the request again."}
	case r.Context().Err() != nil:
		return errGone
	}
	return badBody("unreadable", "", "The request's body could not be read completely: %s.",
		strings.TrimPrefix(err.Error(), "http: "))
}
