package s3

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 50 * time.Millisecond
	maxPause   = 2 * time.Second
	// joinStalls is the time that a storage may take to join the parts of an object, as a multiple
	// of StallAfter.
	joinStalls = 12
)

// try runs a request until it succeeds, fails for good, or was tried often enough. The request
// calls moved when it has transferred bytes. It gets a new context for each try, which ends when
// nothing was transferred for as long as stall.
func (b *Bucket) try(
	ctx context.Context, name string, stall time.Duration,
	request func(ctx context.Context, moved func()) error,
) error {
	var err error
	for n := range b.cfg.Tries {
		if n > 0 && !pause(ctx, n) {
			break
		}
		if err = b.tryOnce(ctx, name, stall, request); err == nil || !retryable(err) {
			break
		}
	}
	return translate(ctx, err)
}

func (b *Bucket) tryOnce(
	ctx context.Context, name string, stall time.Duration,
	request func(ctx context.Context, moved func()) error,
) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	watched, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watch.Stop()
	start := time.Now()
	err := request(watched, func() { watch.Reset(stall) })
	if err != nil && errors.Is(context.Cause(watched), errStalled) {
		err = errStalled
	}
	b.opts.Observe(name, time.Since(start), err)
	b.health.note(ctx, err)
	return err
}

// pause waits before try n, up to twice as long as before the one before it. It returns false if
// the context ends.
func pause(ctx context.Context, n int) bool {
	most := min(firstPause<<n, maxPause)
	select {
	case <-time.After(most/4 + rand.N(most)):
		return true
	case <-ctx.Done():
		return false
	}
}
