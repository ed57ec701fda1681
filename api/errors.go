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

// Error is an answer to a request that can't be served: the status and OpenAI's envelope.
type Error struct {
	Status                     int
	Type, Code, Param, Message string // an empty Code or Param is null on the wire
	// RetryAfter, above 0, tells the client when to try again.
	RetryAfter time.Duration
	// NoRetry tells SDKs not to try again although the status (409, say) would make them.
	NoRetry bool
}

func (e *Error) Error() string { return e.Message }

const (
	invalidRequest = "invalid_request_error"
	serverError    = "server_error"
)

// statusClientGone is what metrics show for a client that left before its answer; nobody sees it on
// the wire.
const statusClientGone = 499

// invalid is a request that its sender has to mend.
func invalid(param, code, format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusBadRequest,
		Type:    invalidRequest,
		Code:    code,
		Param:   param,
		Message: fmt.Sprintf(format, args...),
	}
}

// missing is a request without a parameter that it needs.
func missing(param string) *Error {
	return invalid(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

// notFound is an id that names no object of the tenant; kind is File, Batch, Upload and so on.
func notFound(kind, id string) *Error {
	return &Error{
		Status:  http.StatusNotFound,
		Type:    invalidRequest,
		Param:   "id",
		Message: fmt.Sprintf("No such %s object: %s", kind, id),
	}
}

// named gives a store's ErrNotFound the kind and id that the user asked for; other errors stay as
// they are.
func named(err error, kind, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return notFound(kind, id)
	}
	return err
}

func tooLarge(format string, args ...any) *Error {
	e := invalid("", "", format, args...)
	e.Status = http.StatusRequestEntityTooLarge
	return e
}

// answerTo is the one table from errors to answers.
func answerTo(err error) *Error {
	var (
		known *Error
		large *http.MaxBytesError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return tooLarge("The request's body is over the limit of %d bytes.", large.Limit)
	case errors.Is(err, errRevoked):
		return errWrongKey
	case errors.Is(err, store.ErrNotFound):
		return &Error{Status: http.StatusNotFound, Type: invalidRequest,
			Param: "id", Message: "No such object."}
	case errors.Is(err, store.ErrBadCursor):
		return invalid("after", "invalid_value",
			"Nothing has the id given as 'after'; take it from the page before.")
	case errors.Is(err, store.ErrConflict):
		return &Error{
			Status: http.StatusConflict, Type: invalidRequest, Code: "conflict",
			Message: "The object changed while the request was handled; send it again.",
		}
	case errors.Is(err, store.ErrNoSpace):
		return &Error{
			Status: http.StatusInsufficientStorage, Type: serverError, Code: "insufficient_storage",
			Message:    "The server has no space left to store this. Nothing was kept; delete files or try again later.",
			RetryAfter: 30 * time.Second,
		}
	case errors.Is(err, store.ErrUnavailable):
		return &Error{
			Status: http.StatusServiceUnavailable, Type: serverError, Code: "store_unavailable",
			Message:    "The server can't use its storage now; send the request again later.",
			RetryAfter: 2 * time.Second,
		}
	case errors.Is(err, context.Canceled):
		return &Error{Status: statusClientGone, Type: invalidRequest,
			Message: "The client closed the request."}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{
			Status: http.StatusServiceUnavailable, Type: serverError, Code: "timeout",
			Message: "The server took too long; send the request again.", RetryAfter: time.Second,
		}
	}
	return &Error{Status: http.StatusInternalServerError, Type: serverError,
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

// writeError sends e. It is for an answer that has not begun.
func writeError(w http.ResponseWriter, e *Error) {
	h := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Content-Disposition",
		"Etag", "Last-Modified"} {
		h.Del(name) // of the answer that was meant
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
		panic(err) // strings only
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
	w.Write(append(body, '\n'))
	return nil
}

// orNull is for fields that are null, never "", when they say nothing.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orNullTime is a time as the API shows it: whole Unix seconds, or null.
func orNullTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	seconds := t.Unix()
	return &seconds
}

const (
	// maxBody bounds a JSON body.
	maxBody = 1 << 20
	// smallBody is the size up to which a JSON body costs next to nothing.
	smallBody = 32 << 10
)

// readBody reads a JSON body whole. Requests without one give an empty slice and need no content
// type. A large body waits for its turn.
//
// Only a body that says it is JSON is taken for it: web pages of other sites can make browsers send
// any other without asking first.
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
			"The JSON body is over the limit of %d bytes; large input belongs into a file.",
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

func notJSON(r *http.Request) *Error {
	e := invalid("", "unsupported_media_type",
		"The body's Content-Type is %s; this route reads JSON. Send the header 'Content-Type: application/json' (with curl: -H 'Content-Type: application/json').",
		quoted(r.Header.Get("Content-Type")))
	e.Status = http.StatusUnsupportedMediaType
	return e
}

// enterBody waits until a large JSON body may be held.
func enterBody(w http.ResponseWriter, r *http.Request) error {
	return enterGate(w, r, &w.(*response).server.gates.bodies)
}

// bodyFailure is the answer to a body that ended, or became garbage, before its end.
func bodyFailure(r *http.Request, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Error{
			Status: http.StatusRequestTimeout, Type: invalidRequest, Code: "body_timeout",
			Message: "The request's body did not come in time; send it again.",
		}
	}
	if r.Context().Err() != nil {
		return fmt.Errorf("read body: %w", context.Cause(r.Context()))
	}
	return invalid("", "", "The request's body could not be read to its end: %s.",
		strings.TrimPrefix(err.Error(), "http: "))
}
