// Package embedded is the store backend for one machine: a SQLite database and files, in one
// directory. It registers itself under the name "embedded".
package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tidefill/tidefill/internal/closing"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// Name is the name of the backend in the configuration.
const Name = "embedded"

func init() {
	store.RegisterBackend(Name, store.BackendFactory{Default: DefaultConfig(), Open: open,
		Migrate: migrate, Backup: backup})
}

// databaseFile is the name of the database in the directory.
const databaseFile = "tidefill.db"

func migrate(ctx context.Context, o store.OpenOptions, dryRun bool) (store.Migration, error) {
	from, to, err := sqlite.Migrate(ctx, filepath.Join(o.Directory, databaseFile), dryRun)
	return store.Migration{From: from, To: to}, err
}

// open opens the directory, takes its lock for the node, and opens the database in it.
func open(ctx context.Context, o store.OpenOptions) (_ *store.Backend, err error) {
	cfg, ok := o.Config.(Config)
	if !ok {
		return nil, fmt.Errorf("open the embedded store: its configuration is a %T, want a %T",
			o.Config, cfg)
	}
	var opened closing.List
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	files, err := disk.Open(o.Directory, disk.Options{ReserveBytes: cfg.ReserveBytes,
		Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	opened.Add("data directory", files.Close)
	unlock, err := files.Lock(o.Node)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", o.Directory, err)
	}
	opened.Add("node lock", unlock)
	db, err := sqlite.Open(ctx, filepath.Join(o.Directory, databaseFile), sqlite.Options{
		Expiry: o.Expiry, Space: files,
	})
	if err != nil {
		return nil, err
	}
	opened.Add("database", db.Close)
	if err := store.CheckMove(ctx, db, o); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", o.Directory, err)
	}
	return &store.Backend{
		Records: db, Progress: db, Blobs: files.Blobs(), Journals: files.Journals(), Spool: files,
		Available: files.Available, FreeBytes: files.FreeBytes,
		CheckSpace: files.CheckSpace,
		OtherNodes: files.OtherNodes, Close: opened.Close,
	}, nil
}
