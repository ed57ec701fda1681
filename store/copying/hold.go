package copying

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// defaultLease is the time for which a copy that was killed keeps its locks.
const defaultLease = 30 * time.Second

// errLost ends a copy that another one may take over.
var errLost = errors.New("the lock of the copy was lost")

// hold is the lock of a copy in one of its stores. It is renewed until it is released, and ends
// with its lease if the process is killed.
type hold struct {
	side  Side
	owner store.Owner
	lease time.Duration
	stop  context.CancelFunc
	ended chan struct{} // closed when it is not renewed any more
}

// lockBoth locks both stores. The context ends when a lock is lost. release frees the locks.
func (c *copier) lockBoth(
	ctx context.Context,
) (held context.Context, release func() error, err error) {
	node := store.CopyNode + strings.ToLower(rand.Text()[:8])
	held, lose := context.WithCancelCause(ctx)
	var holds []*hold
	release = func() (err error) {
		lose(nil)
		for _, h := range holds {
			err = errors.Join(err, h.release())
		}
		return err
	}
	for _, side := range []Side{c.to, c.from} {
		h := &hold{side: side, lease: c.opts.Lease, ended: make(chan struct{})}
		if err := h.lock(ctx, node); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%s: %w", side.Name, err), release())
		}
		renewing, stop := context.WithCancel(held)
		h.stop = stop
		go h.renewUntil(renewing, lose)
		holds = append(holds, h)
	}
	return held, release, nil
}

func (h *hold) lock(ctx context.Context, node string) (err error) {
	records := h.side.Backend.Records
	if h.owner, err = records.Register(ctx, node, h.lease); err != nil {
		return err
	}
	_, ok, err := records.Lock(ctx, h.owner, store.CopyLock)
	if err == nil && !ok {
		err = fmt.Errorf("another `tidefill store copy` uses this store, or was killed less than "+
			"%v ago; wait for its end, and try again", h.lease)
	}
	if err != nil {
		return errors.Join(err, h.unregister())
	}
	return nil
}

// renewUntil renews the lease until ctx ends. It calls lose when the lease may have ended.
func (h *hold) renewUntil(ctx context.Context, lose context.CancelCauseFunc) {
	defer close(h.ended)
	tick := time.NewTicker(h.lease / 6)
	defer tick.Stop()
	for renewed := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		err := h.renew(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && asked.Sub(renewed) < h.lease:
			renewed = asked
		case err == nil: // this process was suspended
			lose(fmt.Errorf("%s: %w: this process stood still for %v; copy again", h.side.Name,
				errLost, asked.Sub(renewed).Round(time.Second)))
			return
		case errors.Is(err, store.ErrFenced) || time.Since(renewed) >= h.lease:
			lose(fmt.Errorf("%s: %w; copy again: %w", h.side.Name, errLost, err))
			return
		}
	}
}

func (h *hold) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.lease/2)
	defer cancel()
	return h.side.Backend.Records.Renew(ctx, h.owner, h.lease)
}

// release frees the lock, and with it the lease.
func (h *hold) release() error {
	h.stop()
	<-h.ended
	if err := h.unregister(); err != nil {
		return fmt.Errorf("%s: free the lock of the copy, which ends in %v: %w", h.side.Name,
			h.lease, err)
	}
	return nil
}

func (h *hold) unregister() error {
	ctx, cancel := context.WithTimeout(context.Background(), h.lease/2)
	defer cancel()
	return h.side.Backend.Records.Unregister(ctx, h.owner)
}
