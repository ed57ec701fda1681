package inline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// failure is the answer to a request that no runner answers, in the shape of OpenAI's errors.
type failure struct {
	status                     int
	kind, code, param, message string // an empty code or param is null on the wire
	retryAfter                 time.Duration
	// reason is a label of metrics.
	reason string
}

func (f *failure) Error() string { return f.message }

const (
	invalidRequest = "invalid_request_error"
	rateLimitError = "rate_limit_error"
	serverError    = "server_error"
)

// badBody returns the answer 400 to a body that is not passed on.
func badBody(reason, param, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, kind: invalidRequest, param: param,
		message: fmt.Sprintf(format, args...), reason: reason}
}

// unknownModel returns the answer to a model that the tenant can't use. It is the same for models
// that do not exist and for use cases of other tenants.
func unknownModel(model string) *failure {
	return &failure{status: http.StatusNotFound, kind: invalidRequest, code: "model_not_found",
		message: "The model '" + model + "' does not exist", reason: "unknown_model"}
}

// errRedirect is the error of a runner that redirects. A request goes only where the operator
// configured.
var errRedirect = errors.New("the model server redirects")

// upstreamError is the error of a request that a runner has not answered.
type upstreamError struct {
	outcome plan.Outcome
	cause   error
}

func (e *upstreamError) Error() string { return e.outcome.String() + ": " + e.cause.Error() }
func (e *upstreamError) Unwrap() error { return e.cause }

// failureOf returns the answer to a request that has failed before its answer began. All errors
// become answers here.
func failureOf(err error, class string) *failure {
	var (
		known    *failure
		refused  *Refused
		upstream *upstreamError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return refusal(refused, class)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return errGone
	case errors.As(err, &upstream):
		return &failure{status: http.StatusBadGateway, kind: serverError, code: "upstream_failed",
			message: "The model server did not answer; send the request again.",
			reason:  upstream.outcome.String()}
	}
	return &failure{status: http.StatusInternalServerError, kind: serverError,
		message: "The server had an internal error.", reason: "internal"}
}

// goneReason is the reason of errGone.
const goneReason = "gone"

// errGone stands for the answer to a request whose context has ended: its client has gone, or its
// key. Package api answers it.
var errGone = &failure{reason: goneReason, message: "the request has ended"}

// refusal returns the answer to a request that gets no place: 429 if other requests have the
// places, otherwise 503.
func refusal(r *Refused, class string) *failure {
	f := &failure{status: http.StatusServiceUnavailable, kind: serverError, code: string(r.Why),
		retryAfter: max(time.Second, r.RetryAfter), reason: string(r.Why)}
	switch r.Why {
	case plan.TooMany, plan.Waited:
		f.status, f.kind, f.code = http.StatusTooManyRequests, rateLimitError,
			"rate_limit_exceeded"
		if class == flows.Flex {
			f.code = "resource_unavailable" // as OpenAI's
		}
		f.message = "The model's servers are busy: too many requests wait (too_many_waiting); " +
			"send the request again later."
		if r.Why == plan.Waited {
			f.message = fmt.Sprintf("The model's servers are busy: no place became free within "+
				"%v (waited); send the request again later.", r.Waited.Round(time.Millisecond))
		}
	case plan.NoRunner:
		f.message = "No server runs the model at present (no_runner); send the request again later."
	default:
		f.message = "No server takes requests for the model at present (" + string(r.Why) +
			"); send the request again later."
	}
	return f
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

// write sends the failure. No part of an answer may have been sent before.
func (f *failure) write(w http.ResponseWriter) {
	body, err := json.Marshal(envelope{envelopeError{f.message, f.kind, orNull(f.param),
		orNull(f.code)}})
	if err != nil {
		panic(err) // cannot fail: strings only
	}
	h := w.Header()
	if f.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_, _ = w.Write(append(body, '\n'))
}

// orNull returns nil for the empty string.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
