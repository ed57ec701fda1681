package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidefill/tidefill/internal/closing"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/redis"
	"github.com/tidefill/tidefill/store/s3"
	"github.com/tidefill/tidefill/store/segments"
)

// Name is the name of the backend in the configuration.
const Name = "cluster"

func init() {
	store.RegisterBackend(Name, store.BackendFactory{Default: DefaultConfig(), Open: open,
		Migrate: migrate})
}

func migrate(ctx context.Context, o store.OpenOptions, dryRun bool) (store.Migration, error) {
	cfg, err := configOf(o)
	if err != nil {
		return store.Migration{}, err
	}
	from, to, err := postgres.Migrate(ctx, cfg.Metadata, dryRun)
	if err != nil {
		return store.Migration{}, fmt.Errorf("store.cluster.metadata: %w", err)
	}
	return store.Migration{From: from, To: to}, nil
}

func configOf(o store.OpenOptions) (Config, error) {
	cfg, ok := o.Config.(Config)
	if !ok {
		return cfg, fmt.Errorf("open the cluster store: its configuration is a %T, want a %T",
			o.Config, cfg)
	}
	return cfg, nil
}

// open opens the database, and the directory, which must belong to the same installation.
func open(ctx context.Context, o store.OpenOptions) (_ *store.Backend, err error) {
	cfg, err := configOf(o)
	if err != nil {
		return nil, err
	}
	var opened closing.List
	defer func() {
		if err != nil {
			err = errors.Join(err, opened.Close())
		}
	}()
	if o.Directory, err = filepath.Abs(o.Directory); err != nil {
		return nil, err
	}
	if err := refuseEmbedded(o.Directory); err != nil {
		return nil, err
	}
	measured := NewMetrics()
	db, err := postgres.Open(ctx, cfg.Metadata, postgres.Options{Expiry: o.Expiry,
		Node: o.Node, Observe: measured.transaction, Promoted: measured.promoted})
	if err != nil {
		return nil, fmt.Errorf("store.cluster.metadata: %w", err)
	}
	opened.Add("database", db.Close)
	if err := checkClock(ctx, db); err != nil {
		return nil, err
	}
	if err := store.CheckMove(ctx, db, o); err != nil {
		return nil, fmt.Errorf("store.cluster.metadata: %w", err)
	}
	if cfg.Objects.Bucket == "" {
		// Before anything is created in a directory that is not mounted.
		known, err := db.Place(ctx)
		if err == nil && known.Name != "" && !o.Accepting {
			err = verify(ctx, directory{path: o.Directory}, known)
		}
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
	}
	files, err := disk.Open(o.Directory, disk.Options{ReserveBytes: cfg.ReserveBytes,
		Scratch: cfg.Objects.Bucket != "", Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	opened.Add("data directory", files.Close)
	unlock, err := files.Lock(o.Node)
	if err != nil {
		return nil, fmt.Errorf("data directory %s: %w", o.Directory, err)
	}
	opened.Add("node lock", unlock)
	claims, err := newNames(db, files)
	if err != nil {
		return nil, err
	}
	backend := &store.Backend{
		Records: db, Progress: db, Blobs: files.Blobs(), Journals: files.Journals(), Spool: files,
		Available: files.Available, FreeBytes: files.FreeBytes,
		CheckSpace: files.CheckSpace, ClaimName: claims.claim,
		OtherNodes: files.OtherNodes, Close: opened.Close,
	}
	var at place = directory{o.Directory, files}
	var objects *s3.Bucket
	if cfg.Objects.Bucket != "" {
		objects, err = s3.Open(ctx, cfg.Objects, s3.Options{Logger: o.Logger,
			Observe: measured.request})
		if err != nil {
			return nil, fmt.Errorf("store.cluster.objects: %w", err)
		}
		opened.Add("bucket", objects.Close)
		at = bucket{cfg.Objects, objects}
		backend.Blobs, backend.BucketAway = objects.Blobs(), objects.Away
	}
	if err := settleIn(ctx, o, db, at, backend); err != nil {
		return nil, fmt.Errorf("%s: %w", at.key(), err)
	}
	if objects != nil { // after the place is known to be the right one, since journals sweep it
		journals, err := segments.Open(ctx, objects, db.Segments(), segments.Options{
			Logger: o.Logger, Observe: measured.commit})
		if err != nil {
			return nil, err
		}
		opened.Add("journals", journals.Close)
		backend.Journals = journals
	}
	aging := newAge(db, at, o.Logger)
	opened.Add("heartbeat", aging.close)
	backend.Blobs, backend.Older = agingBlobs{backend.Blobs, aging}, aging.older
	// Metrics are registered last, since a start is tried again while a part is away.
	if cfg.Live.URL != "" {
		medium, err := redis.Open(ctx, cfg.Live, redis.Options{Progress: db, Logger: o.Logger,
			Registerer: o.Registerer})
		if err != nil {
			return nil, fmt.Errorf("store.cluster.live: %w", err)
		}
		opened.Add("Redis", medium.Close)
		backend.Progress = medium
	}
	if err := measured.Register(o.Registerer, db.PoolStats); err != nil {
		return nil, fmt.Errorf("register the metrics of the cluster store: %w", err)
	}
	return backend, nil
}

// settleIn verifies that the place is the one of the database, unless it is to become that.
func settleIn(
	ctx context.Context, o store.OpenOptions, db *postgres.DB, p place, backend *store.Backend,
) error {
	if o.Accepting {
		backend.Accept = func(ctx context.Context) error { return accept(ctx, db, p) }
		return nil
	}
	settled, err := settle(ctx, db, p, backend.Blobs)
	if err != nil {
		return err
	}
	p.expect(settled.Marker)
	backend.Misplaced = p.misplaced
	return nil
}

// refuseEmbedded returns an error if the directory holds an embedded store, whose files would be
// swept: no record of the database mentions them.
func refuseEmbedded(directory string) error {
	_, err := os.Stat(filepath.Join(directory, "tidefill.db"))
	switch {
	case err == nil:
		return fmt.Errorf("data directory %s holds an embedded store (tidefill.db); give the "+
			"cluster a directory of its own, or set store.backend: embedded", directory)
	case errors.Is(err, os.ErrNotExist):
		return nil
	}
	return fmt.Errorf("data directory %s: %w", directory, err)
}
