package segments

import (
	"context"
	"sync"
	"time"
)

// keys makes the keys of one process. Its stamps follow the time of the registry's server, which
// the process has learned last, by the monotonic clock.
type keys struct {
	process int64

	mu      sync.Mutex
	server  Stamp     // the server's time
	learned time.Time // when the process learned it
	last    Stamp
	count   int64
}

// learn records the server's time. It was taken before the call, so stamps do not run ahead of it.
func (k *keys) learn(server Stamp) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.server, k.learned = server, time.Now()
}

// next returns a new key. Stamps do not go back.
func (k *keys) next() Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = max(k.last, k.server.Add(time.Since(k.learned)))
	k.count++
	return Key{Stamp: k.last, Process: k.process, Count: k.count}
}

// refresh asks the registry for the time, after it has refused a key as too old.
func (k *keys) refresh(ctx context.Context, r Registry) error {
	now, err := r.Now(ctx)
	if err == nil {
		k.learn(now)
	}
	return err
}
