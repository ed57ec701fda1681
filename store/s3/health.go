package s3

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// healthyFor is the time for which a success counts before Away asks the storage.
	healthyFor = 5 * time.Second
	// failedFor is the time for which a failure counts.
	failedFor = time.Second
)

// health knows how the last request ended.
type health struct {
	mu      sync.Mutex
	at      time.Time // of the last request; zero: there was none
	failure error     // of it; nil: the storage has answered

	checking sync.Mutex // held during a request of Away
}

// note takes the result of a try. A request that its caller has canceled says nothing.
func (h *health) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	failure := translate(ctx, err)
	if !errors.Is(failure, store.ErrUnavailable) && !errors.Is(failure, store.ErrNoSpace) {
		failure = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at, h.failure = time.Now(), failure
}

// last returns how the last request ended, and whether that counts still.
func (h *health) last() (failure error, counts bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	age := time.Since(h.at)
	return h.failure, !h.at.IsZero() && (h.failure != nil && age < failedFor ||
		h.failure == nil && age < healthyFor)
}

// Away returns the reason why the storage can't be used now; nil: it can. It asks the storage if
// there was no request lately.
func (b *Bucket) Away(ctx context.Context) error {
	if failure, counts := b.health.last(); counts {
		return failure
	}
	b.health.checking.Lock()
	defer b.health.checking.Unlock()
	if failure, counts := b.health.last(); counts {
		return failure
	}
	err := b.Check(ctx)
	failure, _ := b.health.last()
	switch {
	case err == nil:
		return nil
	case failure == nil: // it has not answered within the caller's time
		return err
	}
	return failure
}
