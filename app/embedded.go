package app

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// openEmbedded opens the data directory, takes its lock for this node, and opens the database in
// it.
func (a *App) openEmbedded(ctx context.Context) (openedStore, error) {
	files, err := disk.Open(a.cfg.Data, disk.Options{
		ReserveBytes: a.cfg.Store.ReserveBytes, Logger: a.log,
	})
	if err != nil {
		return openedStore{}, err
	}
	a.onClose("data directory", files.Close)
	release, err := files.Lock(a.cfg.Node)
	if err != nil {
		return openedStore{}, fmt.Errorf("data directory %s: %w", a.cfg.Data, err)
	}
	a.onClose("node lock", release)
	db, err := sqlite.Open(ctx, filepath.Join(a.cfg.Data, "tidefill.db"), sqlite.Options{
		Expiry: a.clock.Expiry, LockWait: a.cfg.Store.LockWait, Space: files,
	})
	if err != nil {
		return openedStore{}, err
	}
	a.onClose("database", db.Close)
	return openedStore{
		api: api.Store{Metadata: db, Progress: db, Blobs: files.Blobs(),
			Journals: files.Journals()},
		dispatch: dispatch.Store{Metadata: db, Progress: db, Blobs: files.Blobs(),
			Journals: files.Journals(), Spool: files},
		status:    db,
		available: files.Available,
		freeBytes: files.FreeBytes,
	}, nil
}
