package openai

import (
	"context"
	"errors"
	"net/http"

	"github.com/tidefill/tidefill/dispatch/plan"
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
	case errors.Is(err, errTooLarge) || errors.Is(err, errNoObject):
		return plan.Garbled
	case errors.Is(err, errNotKept) || errors.Is(err, ErrUnreadable):
		return plan.Evicted
	default:
		return plan.Died
	}
}

func classifyStatus(a Answer) plan.Outcome {
	if dropped, known := a.Report.Dropped.outcome(); known && a.Status >= 400 {
		return dropped
	}
	switch s := a.Status; {
	case s >= 200 && s < 300:
		if !a.Object {
			return plan.Garbled
		}
		return plan.Succeeded
	case s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable:
		return plan.Shed
	case s == http.StatusBadGateway:
		return plan.Died // from a gateway whose backend broke off or is not there
	case s >= 500:
		return plan.Failed
	default:
		return plan.Refused // 4xx, and the 3xx that are not followed
	}
}
