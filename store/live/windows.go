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

// Step is the time that one request takes of the limit.
func (l Limit) Step() time.Duration { return l.Per / time.Duration(l.Most) }

// Take returns when the window is empty again after one more request, given when it is now. wait is
// the time to wait if the request is over the limit. The window fills with every request by one
// step, and empties with time. So no moment lets through twice the limit, as windows that begin
// anew do.
func (l Limit) Take(now, empty time.Time) (after time.Time, wait time.Duration) {
	if empty.Before(now) {
		empty = now
	}
	after = empty.Add(l.Step())
	if over := after.Sub(now) - l.Per; over > 0 {
		return empty, over
	}
	return after, 0
}

// Taken is the state of a window after a request.
type Taken struct {
	// Wait is the time after which a request may be counted. 0: this one was.
	Wait time.Duration
	// Left is the number of further requests that may come at once.
	Left int
	// Empty is the time until the window is empty, if none comes.
	Empty time.Duration
}

// Taken returns the state of a window that is empty after a time. wait is as from Take.
func (l Limit) Taken(empty, wait time.Duration) Taken {
	return Taken{Wait: wait, Left: int(max(0, l.Per-empty) / l.Step()), Empty: empty}
}

// Windows count requests over all processes.
type Windows interface {
	// Take counts a request of the key if it is within the limit. It does not fail: while the
	// medium is away, it counts the requests of this process alone.
	Take(ctx context.Context, key string, l Limit) Taken
	// Give takes back a request that Take has counted, for another process that counts it too.
	Give(ctx context.Context, key string, l Limit)
}
