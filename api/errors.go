package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// httpError is the answer to a request that failed: a status and an error in OpenAI's format.
type httpError struct {
	Status                     int
	Type, Code, Param, Message string // an empty Code or Param is null on the wire
	// RetryAfter, above 0, is sent as the header Retry-After, in seconds.
	RetryAfter time.Duration
	// NoRetry makes SDKs not send the request again, which they do for some statuses, such as 409.
	NoRetry bool
}

func (e *httpError) Error() string { return e.Message }

const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// statusClientGone is the status in metrics for a client that disconnected before its answer.
const statusClientGone = 499

// invalid returns the answer 400 to a request that its sender must correct.
func invalid(param, code, format string, args ...any) *httpError {
	return &httpError{
		Status:  http.StatusBadRequest,
		Type:    invalidRequest,
		Code:    code,
		Param:   param,
		Message: fmt.Sprintf(format, args...),
	}
}

// missing returns the answer to a request without a required parameter.
func missing(param string) *httpError {
	return invalid(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// notFound returns the answer to an id of which the tenant has no object. kind is File, Batch,
// Upload and so on.
func notFound(kind, id string) *httpError {
	return &httpError{
		Status:  http.StatusNotFound,
		Type:    invalidRequest,
		Param:   "id",
		Message: fmt.Sprintf("No such %s object: %s", kind, id),
	}
}

// named replaces a store's ErrNotFound by the answer that names the kind and id. It returns other
// errors unchanged.
func named(err error, kind, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return notFound(kind, id)
	}
	return err
}

func tooLarge(format string, args ...any) *httpError {
	e := invalid("", "", format, args...)
	e.Status = http.StatusRequestEntityTooLarge
	return e
}

// answerTo returns the answer to an error. All errors become answers here.
func answerTo(err error) *httpError {
	var (
		known *httpError
		large *http.MaxBytesError
		away  *store.StorageError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return tooLarge("The request's body is over the limit of %d bytes.", large.Limit)
	case errors.Is(err, errRevoked):
		return errWrongKey
	case errors.As(err, &away):
		return &httpError{
			Status: http.StatusServiceUnavailable, Type: serverError, Code: "storage_away",
			Message: fmt.Sprintf("The storage that holds the file can't be used: %s; send the "+
				"request again later.", away.Cause),
			RetryAfter: 10 * time.Second,
		}
	case errors.Is(err, store.ErrNotFound):
		return &httpError{Status: http.StatusNotFound, Type: invalidRequest,
			Param: "id", Message: "No such object."}
	case errors.Is(err, store.ErrBadCursor):
		return invalid("after", "invalid_value",
			"No object has the id given as 'after'; take the id from the previous page.")
	case errors.Is(err, store.ErrConflict):
		return &httpError{
			Status: http.StatusConflict, Type: invalidRequest, Code: "conflict",
			Message: "The object changed while the request was handled; send the request again.",
		}
	case errors.Is(err, store.ErrNoSpace):
		return &httpError{
			Status: http.StatusInsufficientStorage, Type: serverError, Code: "insufficient_storage",
			Message: "The server has no space left to store this. Nothing was stored; delete " +
				"files or try again later.",
			RetryAfter: 30 * time.Second,
		}
	case errors.Is(err, store.ErrUnavailable):
		return &httpError{
			Status: http.StatusServiceUnavailable, Type: serverError, Code: "store_unavailable",
			Message:    "The server's storage is unavailable; send the request again later.",
			RetryAfter: 2 * time.Second,
		}
	case errors.Is(err, context.Canceled):
		return &httpError{Status: statusClientGone, Type: invalidRequest,
			Message: "The client closed the request."}
	case errors.Is(err, context.DeadlineExceeded):
		return &httpError{
			Status: http.StatusServiceUnavailable, Type: serverError, Code: "timeout",
			Message: "The server took too long; send the request again.", RetryAfter: time.Second,
		}
	}
	return &httpError{Status: http.StatusInternalServerError, Type: serverError,
		Message: "The server had an internal error."}
}

type envelope struct {
	Error envelopeError `json:"error"`
}

type envelopeError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// writeError sends e. No part of an answer may have been sent before.
func writeError(w http.ResponseWriter, e *httpError) {
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition",
		"Etag", "Last-Modified"} {
		h.Del(name) // set for the answer that failed
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	if e.NoRetry {
		h.Set("X-Should-Retry", "false")
	}
	body, err := json.Marshal(envelope{envelopeError{
		Message: e.Message,
		Type:    e.Type,
		Param:   orNull(e.Param),
		Code:    orNull(e.Code),
	}})
	if err != nil {
		panic(err) // cannot fail: strings only
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	w.Write(append(body, '\n'))
}

// writeJSON answers 200 with v.
func writeJSON(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	if _, err := w.Write(append(body, '\n')); errors.Is(err, errRevoked) {
		return err // nothing is sent yet; other errors mean that the client is gone
	}
	return nil
}

// orNull returns nil for the empty string, for fields that are null rather than "".
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orNullTime returns a time in Unix seconds; nil for the zero time.
func orNullTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Unix()
	return &seconds
}

const (
	// maxBody limits the size of a JSON body.
	maxBody = 1 << 20
	// smallBody is the size up to which JSON bodies are read without waiting for the gate.
	smallBody = 32 << 10
)

// readBody reads a JSON body. It returns an empty slice for a request without one, which needs no
// Content-Type. A body above smallBody waits at the gate for large bodies.
//
// The Content-Type must be JSON: a web page of another site can make a browser send a body of any
// other type without asking this server first.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	source := http.MaxBytesReader(w, r.Body, maxBody)
	if r.ContentLength > 0 && !isJSON(r) {
		return nil, notJSON(r)
	}
	body, err := io.ReadAll(io.LimitReader(source, smallBody))
	if err == nil && len(body) == smallBody {
		if err := enterBody(w, r); err != nil {
			return nil, err
		}
		rest := bytes.NewBuffer(body)
		_, err = rest.ReadFrom(source)
		body = rest.Bytes()
	}
	var large *http.MaxBytesError
	switch {
	case len(body) > 0 && !isJSON(r):
		return nil, notJSON(r)
	case errors.As(err, &large):
		return nil, tooLarge(
			"The JSON body is over the limit of %d bytes; send large input as a file.",
			int64(maxBody))
	case err != nil:
		return nil, bodyFailure(r, err)
	}
	return body, nil
}

func isJSON(r *http.Request) bool {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (mediaType == "application/json" || strings.HasPrefix(mediaType,
		"application/") && strings.HasSuffix(mediaType, "+json"))
}

func notJSON(r *http.Request) *httpError {
	e := invalid("", "unsupported_media_type",
		"The body's Content-Type is %s; this URL accepts JSON. Send the header 'Content-Type: "+
			"application/json' (with curl: -H 'Content-Type: application/json').",
		quoted(r.Header.Get("Content-Type")))
	e.Status = http.StatusUnsupportedMediaType
	return e
}

// enterBody waits until a large JSON body may be read into memory.
func enterBody(w http.ResponseWriter, r *http.Request) error {
	return enterGate(w, r, &w.(*response).server.gates.bodies)
}

// bodyFailure returns the answer to a body that could not be read to its end.
func bodyFailure(r *http.Request, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &httpError{
			Status: http.StatusRequestTimeout, Type: invalidRequest, Code: "body_timeout",
			Message: "The request's body was not received in time; send the request again.",
		}
	}
	if r.Context().Err() != nil {
		return fmt.Errorf("read body: %w", context.Cause(r.Context()))
	}
	return invalid("", "", "The request's body could not be read completely: %s.",
		strings.TrimPrefix(err.Error(), "http: "))
}
