package copying

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// copyNode is the name under which a copy registers with both stores, so that no second copy
	// works with them.
	copyNode = "*store-copy"
	// holdFor is how long the registration lasts without renewal.
	holdFor = 30 * time.Second
)

// held is a copy's registration with both stores.
type held struct {
	sides  []Side
	owners []store.Owner
}

// hold registers with both stores until release. The context that it returns ends if another copy
// takes over.
func (c *copier) hold(
	ctx context.Context,
) (holding context.Context, release func(), err error) {
	h := &held{}
	stop := context.WithoutCancel(ctx)
	for _, side := range []Side{c.from, c.to} {
		o, err := side.Backend.Records.Register(ctx, copyNode, holdFor)
		if err != nil {
			h.release(stop)
			return nil, nil, fmt.Errorf("%s: %w", side.Name, err)
		}
		h.sides, h.owners = append(h.sides, side), append(h.owners, o)
	}
	holding, lose := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.renewUntil(holding, lose)
	}()
	return holding, func() {
		lose(nil)
		<-ended
		h.release(stop)
	}, nil
}

func (h *held) renewUntil(ctx context.Context, lose context.CancelCauseFunc) {
	tick := time.NewTicker(holdFor / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := h.renew(ctx); errors.Is(err, store.ErrFenced) {
			lose(err)
			return
		}
	}
}

// renew fails if another copy has registered.
func (h *held) renew(ctx context.Context) error {
	for i, side := range h.sides {
		err := side.Backend.Records.Renew(ctx, h.owners[i], holdFor)
		if errors.Is(err, store.ErrFenced) {
			return fmt.Errorf("%s: another copy has begun to work with it: %w", side.Name, err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", side.Name, err)
		}
	}
	return nil
}

// release ends the registrations. Those that it can't end soon end by themselves.
func (h *held) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for i, side := range h.sides {
		_ = side.Backend.Records.Unregister(ctx, h.owners[i])
	}
}
