package places

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// askAfter is long enough for the calls to a dead storage to cost little, and short enough for
// users not to notice its return late.
const askAfter = 5 * time.Second

// place is one storage.
type place struct {
	placeKey
	opts    *Options
	turn    chan struct{} // capacity 1: held while a client is opened or asked
	closing sync.WaitGroup

	mu     sync.Mutex
	client *client // nil: none is open
	fault  error   // why the storage did not answer last; nil: it did
	askAt  time.Time
}

// client is an open storage.
type client struct {
	store.Blobs
	secret secretState
	// check returns why the storage can't be used now.
	check func(ctx context.Context) error
	close func() error
	// checkWrite is that of [s3.Shared]; nil: the storage is a profile's.
	checkWrite func(ctx context.Context, name string) error
}

// current returns the open client, and why it can't be used now; nil: it can.
func (p *place) current(secret secretState) (*client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client != nil && p.client.secret != secret {
		p.drop(p.client)
		p.fault = nil
	}
	if p.fault != nil && time.Now().Before(p.askAt) {
		return nil, p.fault
	}
	return p.client, nil
}

// open returns a client that the storage answers, as far as is known.
func (p *place) open(ctx context.Context) (*client, error) {
	secret, err := p.opts.readSecret(p.Storage)
	if err != nil {
		return nil, p.note(ctx, nil, err)
	}
	c, err := p.current(secret.state)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	fault := p.fault
	p.mu.Unlock()
	if c != nil && fault == nil {
		return c, nil
	}
	select {
	case p.turn <- struct{}{}:
	default:
		if fault != nil {
			return nil, fault // another caller asks
		}
		select {
		case p.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer func() { <-p.turn }()
	if c, err = p.current(secret.state); err != nil { // another caller was first
		return nil, err
	}
	return p.connect(ctx, c, secret)
}

// connect opens a client, or asks the storage whether the open one can be used.
func (p *place) connect(ctx context.Context, c *client, secret secret) (_ *client, err error) {
	if c == nil {
		c, err = p.opts.connect(ctx, p.placeKey, secret)
	} else {
		err = c.check(ctx)
	}
	if err != nil {
		return nil, p.note(ctx, c, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.client, p.fault = c, nil
	return c, nil
}

// note returns an error as callers get it, and remembers that the storage did not answer. A client
// that the storage refuses is closed, since its credentials may have changed.
func (p *place) note(ctx context.Context, c *client, err error) error {
	var known *store.StorageError
	if err == nil || errors.Is(err, store.ErrNotFound) || errors.As(err, &known) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	known = &store.StorageError{Storage: p.Storage, Cause: causeOf(p.Storage, err), Err: err}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case errors.Is(err, store.ErrRefused):
		if c != nil && p.client == c {
			p.drop(c)
		}
	case errors.Is(err, store.ErrUnavailable):
		p.fault, p.askAt = known, time.Now().Add(p.opts.AskAfter)
	}
	return known
}

// drop closes the open client in the background: others may use it still. The caller holds mu.
func (p *place) drop(c *client) {
	p.client = nil
	p.closing.Go(func() {
		if err := c.close(); err != nil {
			p.opts.Logger.Warn("could not close a storage of a profile or a bucket of users",
				"storage", p.Storage.String(), "error", err)
		}
	})
}

func (p *place) close() (err error) {
	p.mu.Lock()
	if p.client != nil {
		err = p.client.close()
		p.client = nil
	}
	p.mu.Unlock()
	p.closing.Wait()
	return err
}

// causeOf returns the Cause of a StorageError.
func causeOf(s store.Storage, err error) string {
	var setup *setupError
	switch {
	case errors.As(err, &setup):
		return setup.text
	case errors.Is(err, store.ErrNoSpace):
		return "it is full"
	case s.Backend == local:
		return "its directory can't be used"
	case errors.Is(err, store.ErrRefused):
		return "it refuses the requests of the daemon"
	}
	return "it does not answer"
}
