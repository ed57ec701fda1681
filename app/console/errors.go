package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidefill/tidefill/internal/suggest"
)

// httpError is an answer in the shape of OpenAI's errors.
type httpError struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"` // nil or a string
	Code    any    `json:"code"`
}

func (e *httpError) Error() string { return e.Message }

func invalid(param, format string, args ...any) *httpError {
	return &httpError{Status: http.StatusBadRequest, Type: "invalid_request_error", Param: param,
		Code: "invalid_value", Message: fmt.Sprintf("Invalid '%s': ", param) +
			fmt.Sprintf(format, args...)}
}

// shownNames limits how many names of pools an error lists.
const shownNames = 20

// unknownPool returns the error for a pool that is not among the known ones. problems may say why
// there is none.
func unknownPool(name string, known, problems []string) *httpError {
	e := &httpError{Status: http.StatusNotFound, Type: "invalid_request_error", Param: "pool",
		Code: "pool_not_found", Message: fmt.Sprintf("There is no pool %s.", quoted(name))}
	switch {
	case len(known) == 0 && len(problems) > 0:
		e.Message += " No pool is known. " + strings.Join(problems, " ")
	case len(known) == 0:
		e.Message += " No pool is known yet: no upstream has listed its models."
	case suggest.Nearest(name, known) != "":
		e.Message += fmt.Sprintf(" Did you mean %s?", quoted(suggest.Nearest(name, known)))
		fallthrough
	default:
		var names []string
		for _, k := range known[:min(len(known), shownNames)] {
			names = append(names, quoted(k))
		}
		e.Message += " The pools are: " + strings.Join(names, ", ")
		if more := len(known) - len(names); more > 0 {
			e.Message += fmt.Sprintf(" and %d more", more)
		}
		e.Message += "."
	}
	return e
}

func unknownURL(r *http.Request) *httpError {
	return &httpError{Status: http.StatusNotFound, Type: "invalid_request_error",
		Code: "unknown_url", Message: fmt.Sprintf("There is no %s %s. A slash within the name of "+
			"a pool is written as %%2F.", r.Method, quoted(r.URL.EscapedPath()))}
}

// quoted returns a name for a message, shortened if it is long.
func quoted(name string) string { return fmt.Sprintf("%.200q", name) }

// serve returns a handler that answers with the error that handle returns, if any.
func (c *Console) serve(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		w.Header().Set("Cache-Control", "no-store")
		err := handle(w, r)
		if err == nil || r.Context().Err() != nil && errors.Is(err, context.Canceled) {
			return
		}
		var known *httpError
		if !errors.As(err, &known) {
			c.deps.Logger.WarnContext(r.Context(), "request failed", "url", r.URL.Path,
				"error", err)
			known = &httpError{Status: http.StatusServiceUnavailable, Type: "server_error",
				Code:    "unavailable",
				Message: "The daemon could not read its state now; the log has the cause."}
		}
		_ = writeJSON(w, known.Status, map[string]*httpError{"error": known})
	})
}

func writeJSON(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
	return nil
}
