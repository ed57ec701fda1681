package live

import (
	"context"
	"time"
)

// Limit is the number of requests that may come: Most at once, and as many again within Per.
type Limit struct {
	Most int
	Per  time.Duration
}

// step is the time that one request takes of the limit.
func (l Limit) step() time.Duration { return l.Per / time.Duration(l.Most) }

// Take returns when the window is empty again after one more request, given when it is now. wait is
// the time to wait if the request is over the limit. The window fills with every request by one
// step, and empties with time. So no moment lets through twice the limit, as windows that begin
// anew do.
func (l Limit) Take(now, empty time.Time) (after time.Time, wait time.Duration) {
	if empty.Before(now) {
		empty = now
	}
	after = empty.Add(l.step())
	if over := after.Sub(now) - l.Per; over > 0 {
		return empty, over
	}
	return after, 0
}

// Windows count requests over all processes.
type Windows interface {
	// Take counts a request of the key, and returns 0 if it is within the limit. Otherwise it is
	// not counted, and the result is after what time one may be. It does not fail: while the medium
	// is away, it counts the requests of this process alone.
	Take(ctx context.Context, key string, l Limit) (wait time.Duration)
}
