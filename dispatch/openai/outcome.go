package openai

import (
	"context"
	"errors"
	"net/http"
	"slices"

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
