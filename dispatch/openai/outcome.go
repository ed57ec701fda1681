package openai

import (
	"context"
	"errors"
	"net/http"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// ErrEvicted is the cause to cancel a request's context with when it is we who end it;
// context.DeadlineExceeded, when its time is over.
var ErrEvicted = errors.New("evicted")

// Classify says how a Send ended, in the planner's terms.
func Classify(ctx context.Context, a Answer, err error) plan.Outcome {
	switch {
	case err == nil:
		return classifyStatus(a)
	case errors.Is(context.Cause(ctx), ErrEvicted):
		return plan.Recalled
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return plan.TimedOut
	case errors.Is(err, ErrUnreachable):
		return plan.Unreachable
	case errors.Is(err, ErrTooLarge) || errors.Is(err, errNoObject):
		return plan.Garbled
	case errors.Is(err, ErrNotKept):
		return plan.Recalled
	default:
		return plan.Died
	}
}

func classifyStatus(a Answer) plan.Outcome {
	switch s := a.Status; {
	case s >= 200 && s < 300:
		if a.Large == nil && !batchfile.IsObject(a.Body) {
			return plan.Garbled
		}
		return plan.Succeeded
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable:
		return plan.Shed
	case s == http.StatusBadGateway:
		return plan.Died // a gateway's word for a backend that broke off or isn't there
	case s >= 500:
		return plan.Failed
	default:
		return plan.Refused // 4xx, and the 3xx that are not followed
	}
}
