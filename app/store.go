package app

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tidefill/tidefill/internal/wallclock"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// openStore opens the data directory, takes its lock for this node, and opens the database.
func (a *App) openStore(ctx context.Context) error {
	node, err := a.cfg.NodeName()
	if err != nil {
		return err
	}
	a.cfg.Node = node
	if a.files, err = disk.Open(a.cfg.Data, disk.Options{
		ReserveBytes: a.cfg.Storage.ReserveBytes, Logger: a.log,
	}); err != nil {
		return err
	}
	a.onClose("data directory", a.files.Close)
	release, err := a.files.Lock(node)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", a.cfg.Data, err)
	}
	a.onClose("node lock", release)
	if err := a.openMetadata(ctx); err != nil {
		return err
	}
	return a.registerStore()
}

// openMetadata opens the database, and the clock by which its files and uploads expire.
func (a *App) openMetadata(ctx context.Context) (err error) {
	a.clock = wallclock.NewGuard(a.cfg.Clock, a.log)
	a.metadata, err = sqlite.Open(ctx, filepath.Join(a.cfg.Data, "tidefill.db"), sqlite.Options{
		Expiry: a.clock.Expiry, LockWait: a.cfg.Storage.LockWait, Space: a.files,
	})
	if err != nil {
		return err
	}
	a.onClose("database", a.metadata.Close)
	newest, err := a.metadata.Newest(ctx)
	if err != nil {
		return err
	}
	a.clock.Resume(newest)
	return nil
}
