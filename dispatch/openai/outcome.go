package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// ErrEvicted is the cause with which the caller of Send cancels its context to end the request.
// When the request's time is over, the cause is context.DeadlineExceeded.
var ErrEvicted = errors.New("evicted")

// Classify returns the planner's outcome of a Send.
func Classify(ctx context.Context, a Answer, err error) plan.Outcome {
	switch {
	case err == nil:
		return classifyStatus(a)
	case errors.Is(context.Cause(ctx), ErrEvicted):
		return plan.Evicted
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return plan.TimedOut
	case errors.Is(err, errUnreachable):
		return plan.Unreachable
	case errors.Is(err, errTooLarge):
		return plan.TooLong
	case errors.Is(err, errNoObject) || errors.Is(err, errNoList):
		return plan.Garbled
	case errors.Is(err, ErrUnreadable):
		return plan.Evicted
	}
	if _, full := errors.AsType[*NotKept](err); full {
		return plan.Evicted
	}
	return plan.Died
}

func classifyStatus(a Answer) plan.Outcome {
	if dropped, known := a.Report.Dropped.outcome(); known && a.Status >= 400 {
		return dropped
	}
	switch s := a.Status; {
	case s >= 200 && s < 300:
		if !a.Object || !a.Listed {
			return plan.Garbled
		}
		return plan.Succeeded
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable:
		return plan.Shed
	case s == http.StatusBadGateway:
		return plan.Died // from a gateway whose backend broke off or is not there
	case s == http.StatusNetworkAuthenticationRequired:
		return plan.Denied // from a portal on the way
	case s >= 500:
		return plan.Failed
	case s == http.StatusNotFound && (a.Foreign || Unknown(a)):
		return plan.Denied // from a server without the route, or without the model
	case s < 400 || s == http.StatusUnauthorized || s == http.StatusForbidden ||
		s == http.StatusProxyAuthRequired:
		return plan.Denied // 3xx are not followed
	default:
		return plan.Refused
	}
}

// aboutTheRequest are statuses that say of any body that the request is at fault.
var aboutTheRequest = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge,
	http.StatusUnprocessableEntity}

// IsForeign reports whether an answer that refuses a request was probably not given by a server
// that knows the API, such as a page of a proxy with 404.
func IsForeign(a Answer) bool { return a.Foreign && !slices.Contains(aboutTheRequest, a.Status) }

// Unknown reports whether an error says that the server does not know the model or the route: the
// line is not at fault, since all others have the same. Servers word it differently:
//
//   - OpenAI and many gateways have the code model_not_found, with 404 or 403;
//   - vLLM "The model `x` does not exist.", Ollama `model "x" not found, try pulling it first`;
//   - vLLM and API gateways "Not Found" for a route, Kong "no Route matched with those values",
//     Fastify "Route POST:/x not found", OpenAI "Invalid URL (POST /x)".
//
// Other 404s are about what a line names, such as a file or an earlier response.
func Unknown(a Answer) bool {
	if a.Status != http.StatusNotFound && a.Status != http.StatusForbidden {
		return false
	}
	e := parseError(a.Body)
	if e.code == "model_not_found" || a.Status == http.StatusForbidden {
		return e.code == "model_not_found"
	}
	text := strings.ToLower(strings.TrimSpace(e.message))
	missing := strings.Contains(text, "not found") || strings.Contains(text, "not exist")
	return text == "not found" || e.param == "model" || strings.HasPrefix(text, "invalid url (") ||
		strings.HasPrefix(text, "no route matched") ||
		missing && (aboutModel.MatchString(text) || strings.HasPrefix(text, "route "))
}

// aboutModel matches a message whose subject is the model.
var aboutModel = regexp.MustCompile("^(error: |litellm\\.notfounderror: )?(the )?model ")

// apiError is the part of an error that says what it is about. A member of another type is empty.
type apiError struct{ code, message, param string }

// parseError reads an error of OpenAI's API, or of an older vLLM.
func parseError(body []byte) apiError {
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return apiError{}
	}
	of := outer
	if inner := outer["error"]; len(inner) > 0 && inner[0] == '{' {
		of = nil
		_ = json.Unmarshal(inner, &of)
	}
	text := func(key string) (s string) {
		_ = json.Unmarshal(of[key], &s)
		return s
	}
	e := apiError{code: text("code"), message: text("message"), param: text("param")}
	if e.message == "" {
		e.message = text("error") // the whole of it
	}
	return e
}

// isError reports whether a body is an error of an API: an object with one of these members.
func isError(body []byte) bool {
	c, is := batchfile.NewCursor(body), false
	for o := c.Object(); o.Next(); {
		switch string(o.Key()) {
		case "error", "message": // of OpenAI; of older versions of vLLM
			is = true
		}
	}
	return is && c.End()
}
