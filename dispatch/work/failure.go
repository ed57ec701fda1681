package work

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/store"
)

// Failure is what the error file says of a request that did not succeed.
type Failure struct {
	CustomID  []byte // of the line; it may be part of the line's object
	Status    int
	RequestID string
	Body      []byte
	Taken     int64  // bytes of the memory for answers that body takes
	Code      string // of an error without an answer, or of an answer that does not count
	Message   string
}

// FailureCodes are the codes of requests without an answer that is one.
var FailureCodes = map[plan.Outcome]string{
	plan.Garbled: "invalid_upstream_answer", plan.TooLong: "invalid_upstream_answer",
	plan.TimedOut: "upstream_timeout",
	plan.Died:     "upstream_connection_lost", plan.Unreachable: "upstream_unreachable",
	plan.CheckFailed: "check_failed",
}

// ShedTooOften is the failure of a line that the planner gave up because its runners shed it again
// and again.
func (a Failure) ShedTooOften() Failure {
	return Failure{CustomID: a.CustomID, Taken: a.Taken, Code: "shed_too_often",
		Message: fmt.Sprintf(
			"this request was answered %d again and again while others of its model "+
				"were served, more often than is tried; the last answer was %q",
			a.Status, a.Body[:min(len(a.Body), 200)])}
}

// ShownFailures returns the most frequent causes as a list.
func ShownFailures(f store.Failures) []store.Failure {
	top := f.Top()
	return slices.DeleteFunc(top[:], func(x store.Failure) bool { return x.Count == 0 })
}

// Cause returns the failure as a cause, counted once.
func (a *Failure) Cause(runner string) store.Failure {
	c := store.Failure{Count: 1, Status: a.Status, Code: a.Code, Sample: a.Message,
		Runner: runner}
	if a.Code == "" {
		c.Code, c.Sample = readError(a.Body)
	}
	c.Sample = sample(c.Sample)
	return c
}

// CauseOf returns the cause of a row of an error file, counted once.
func CauseOf(row []byte) store.Failure {
	var r struct {
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		}
		Error *struct{ Code, Message string }
	}
	if json.Unmarshal(row, &r) != nil {
		return store.Failure{Count: 1}
	}
	a := Failure{}
	switch {
	case r.Error != nil:
		a.Code, a.Message = r.Error.Code, r.Error.Message
		if r.Response != nil { // it does not count
			a.Status = r.Response.Status
		}
	case r.Response != nil:
		a.Status, a.Body = r.Response.Status, r.Response.Body
		if text := ""; json.Unmarshal(a.Body, &text) == nil {
			a.Body = []byte(text)
		}
	}
	return a.Cause("")
}

// readError returns the code and the message of an error as APIs write it; of any other body, the
// text itself.
func readError(body []byte) (code, message string) {
	var e struct {
		Error   json.RawMessage
		Message string
		Code    any
	}
	if len(body) > maxErrorBody || json.Unmarshal(body, &e) != nil {
		return "", string(body[:min(len(body), 2*maxSample)])
	}
	var inner struct {
		Message string
		Code    any
	}
	if json.Unmarshal(e.Error, &inner) == nil {
		e.Message, e.Code = cmp.Or(inner.Message, e.Message), inner.Code
	} else if text := ""; json.Unmarshal(e.Error, &text) == nil {
		e.Message = text
	}
	if text, ok := e.Code.(string); ok {
		code = text
	}
	if e.Message == "" {
		return code, string(body[:min(len(body), 2*maxSample)])
	}
	return code, e.Message
}

// maxErrorBody limits the bytes of an error that are read as JSON.
const maxErrorBody = 4 << 10

// maxSample limits the bytes of a sample.
const maxSample = 160

// sample returns the beginning of a text on one row.
func sample(text string) string {
	text = strings.Join(strings.Fields(text[:min(len(text), 2*maxSample)]), " ")
	if len(text) > maxSample {
		cut := maxSample
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return humanize.Printable(strings.ToValidUTF8(text, "\uFFFD"))
}
