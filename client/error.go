package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Error is an answer of the API with an error status.
type Error struct {
	Status    int    `json:"-"`
	Message   string `json:"message"`
	Type      string `json:"type"`
	Param     string `json:"param"`
	Code      string `json:"code"`
	RequestID string `json:"-"` // identifies the request in the daemon's log
}

func (e *Error) Error() string {
	var details []string
	for _, detail := range []struct{ name, value string }{{"param", e.Param}, {"code", e.Code},
		{"request", e.RequestID}} {
		if detail.value != "" {
			details = append(details, detail.name+" "+detail.value)
		}
	}
	details = append(details, fmt.Sprintf("status %d", e.Status))
	return fmt.Sprintf("%s (%s)", e.Message, strings.Join(details, ", "))
}

// readError reads the error of an answer. If the body has none, as that of a proxy, the error
// quotes the body.
func readError(answer *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	var envelope struct {
		Error *Error `json:"error"`
	}
	if json.Unmarshal(body, &envelope) != nil || envelope.Error == nil ||
		envelope.Error.Message == "" {
		envelope.Error = &Error{Message: fmt.Sprintf("%s answered %s: %.200q",
			answer.Request.URL.Path, answer.Status, body)}
	}
	envelope.Error.Status = answer.StatusCode
	envelope.Error.RequestID = answer.Header.Get("x-request-id")
	return envelope.Error
}

// Temporary reports whether the same request may succeed later: the daemon is unreachable,
// overloaded or failing.
func Temporary(err error) bool {
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return refused.Status >= 500 || refused.Status == http.StatusTooManyRequests
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
