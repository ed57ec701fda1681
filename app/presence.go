package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// present registers a process that does not dispatch, until ctx ends. It holds nothing. Who moves
// the store to another one sees that the process uses it.
func (a *App) present(ctx context.Context) error {
	lease, name := a.cfg.Dispatch.LeaseTTL, a.registeredName()
	var owner store.Owner
	taken := false // by another process, as logged last
	tick := time.NewTicker(lease / 4)
	defer tick.Stop()
	for err := store.ErrFenced; ; err = a.renew(ctx, owner, lease) {
		if errors.Is(err, store.ErrFenced) {
			var registered store.Owner
			if registered, err = a.store.Records.Register(ctx, name, lease); err == nil {
				owner = registered
				a.registered.Store(true)
			}
		}
		was := taken
		_, taken = errors.AsType[*store.NameTaken](err)
		switch {
		case err == nil || ctx.Err() != nil:
		case taken && !was:
			a.log.ErrorContext(ctx, "another process has taken the name of this one: give each a "+
				"name of its own (--node), or stop one", "error", err)
		default:
			a.log.DebugContext(ctx, "could not register, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return a.leave(owner)
		case <-tick.C:
		}
	}
}

// registeredName is the name under which this process registers with the store. Without dispatch it
// is not the node's own: a process that dispatches may have that.
func (a *App) registeredName() string {
	if a.dispatches() {
		return a.cfg.Node
	}
	roles := make([]string, len(a.cfg.Roles))
	for i, role := range a.cfg.Roles {
		roles[i] = string(role)
	}
	return a.cfg.Node + "/" + strings.Join(roles, "+")
}

// claimName makes sure that no other process has this one's name in the store.
func (a *App) claimName(ctx context.Context) error {
	if a.store.ClaimName == nil {
		return nil
	}
	return a.store.ClaimName(ctx, a.registeredName(), a.cfg.Dispatch.LeaseTTL)
}

// renew extends a registration. That of no owner is fenced.
func (a *App) renew(ctx context.Context, o store.Owner, lease time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, lease)
	defer cancel()
	return a.store.Records.Renew(ctx, o, lease)
}

// leave ends the registration. One that remains ends with its lease.
func (a *App) leave(owner store.Owner) error {
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout)
	defer cancel()
	if err := a.store.Records.Unregister(ctx, owner); err != nil {
		a.log.Debug("could not unregister; the registration ends with its lease", "error", err)
	}
	return nil
}
