package app

import (
	"context"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/wallclock"
	"github.com/tidefill/tidefill/store"
)

// openStore opens the store that the configuration selects, and the clock by which its files and
// uploads expire. After an error it can be called again.
func (a *App) openStore(ctx context.Context) (err error) {
	if a.store == nil {
		if err = a.openBackend(ctx); err != nil {
			return err
		}
	}
	newest, err := a.store.Records.Newest(ctx)
	if err != nil {
		return err
	}
	a.clock.Resume(newest)
	if err := a.claimName(ctx); err != nil {
		return err
	}
	return a.registerStore()
}

func (a *App) openBackend(ctx context.Context) (err error) {
	a.clock = wallclock.NewGuard(a.cfg.Clock, a.log)
	backend, err := store.FindBackend(a.cfg.Store.Backend)
	if err != nil {
		return err
	}
	a.store, err = backend.Open(ctx, store.OpenOptions{
		Config: a.cfg.Store.Settings[a.cfg.Store.Backend], Directory: a.cfg.Data,
		Node: a.cfg.Node, Expiry: a.clock.Expiry, Logger: a.log,
		Registerer: a.options.Registry,
	})
	if err != nil {
		return err
	}
	a.onClose("store", a.store.Close)
	return nil
}

func (a *App) apiStore() api.Store {
	return api.Store{Metadata: a.store.Records, Progress: a.store.Progress, Blobs: a.store.Blobs,
		Journals: a.store.Journals, Ledger: a.store.Records}
}

func (a *App) dispatchStore() dispatch.Store {
	return dispatch.Store{Metadata: a.store.Records, Progress: a.store.Progress,
		Blobs: a.store.Blobs, Journals: a.store.Journals, Spool: a.store.Spool}
}
