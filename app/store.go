package app

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/wallclock"
	"github.com/tidefill/tidefill/store"
)

// openedStore is the store that a backend has opened.
type openedStore struct {
	api       api.Store
	dispatch  dispatch.Store
	status    store.Status
	available func() error           // reports why the medium can't be used
	freeBytes func() (uint64, error) // free space of the medium
}

// openStore opens the store that the configuration selects, and the clock by which its files and
// uploads expire.
func (a *App) openStore(ctx context.Context) (err error) {
	if a.cfg.Node, err = a.cfg.NodeName(); err != nil {
		return err
	}
	a.clock = wallclock.NewGuard(a.cfg.Clock, a.log)
	switch backend := a.cfg.Store.Backend; backend {
	case config.EmbeddedStore:
		a.store, err = a.openEmbedded(ctx)
	default: // the configuration was not validated
		err = fmt.Errorf("open store: there is no backend %q", backend)
	}
	if err != nil {
		return err
	}
	newest, err := a.store.status.Newest(ctx)
	if err != nil {
		return err
	}
	a.clock.Resume(newest)
	return a.registerStore()
}
