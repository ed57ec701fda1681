package redis

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// pingEvery is the time between two pings while the server is away.
const pingEvery = 250 * time.Millisecond

// breaker keeps calls from a server that is away. It opens when a call fails, and closes when a
// ping in the background succeeds, so that no call of a user waits for that.
type breaker struct {
	ping    func(context.Context) error
	log     *slog.Logger
	metrics *metrics

	reason atomic.Pointer[error] // nil: closed
	mu     sync.Mutex            // of pings and ended
	pings  sync.WaitGroup
	ctx    context.Context
	end    context.CancelFunc
}

func newBreaker(
	ping func(context.Context) error, log *slog.Logger, metrics *metrics,
) *breaker {
	b := &breaker{ping: ping, log: log, metrics: metrics}
	b.ctx, b.end = context.WithCancel(context.Background())
	metrics.up.Set(1)
	return b
}

// open reports whether no calls shall be sent.
func (b *breaker) open() bool { return b.reason.Load() != nil }

// why returns the error that opened the breaker; nil: it is closed.
func (b *breaker) why() error {
	if reason := b.reason.Load(); reason != nil {
		return *reason
	}
	return nil
}

// failed opens the breaker.
func (b *breaker) failed(err error) {
	b.metrics.failures.Inc()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil || !b.reason.CompareAndSwap(nil, &err) {
		return
	}
	b.metrics.up.Set(0)
	b.log.Warn("Redis is away: processes of this store notice changes later, and show older "+
		"numbers, until it answers", "error", err)
	began := time.Now()
	b.pings.Go(func() {
		for {
			select {
			case <-b.ctx.Done():
				return
			case <-time.After(pingEvery):
			}
			if b.ping(b.ctx) == nil {
				break
			}
		}
		b.reason.Store(nil)
		b.metrics.up.Set(1)
		b.log.Info("Redis answers again", "after", time.Since(began).Round(time.Millisecond))
	})
}

// close ends the pings.
func (b *breaker) close() {
	b.mu.Lock()
	b.end()
	b.mu.Unlock()
	b.pings.Wait()
}
