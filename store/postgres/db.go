package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Options configures Open.
type Options struct {
	// Now replaces the server's clock, for tests. Default: the server's clock decides about leases
	// and retention.
	Now func() time.Time
	// Expiry is the clock by which files and uploads expire. Default: Now, or time.Now.
	Expiry func() time.Time
	// Node is the name of this process in the server's list of connections.
	Node string
	// Observe is called after every transaction, for metrics. write reports whether it writes, and
	// took is its time with all its attempts. unavailable is the error if the server could not be
	// reached or refused to work. It must return at once. nil: none.
	Observe func(write bool, took time.Duration, unavailable error)
	// Promoted is called when another server has taken over as the primary. It must return at once.
	// nil: none.
	Promoted func()
}

// DB is an open database.
type DB struct {
	now     func() time.Time // nil: the server's clock
	expiry  func() time.Time // by which files and uploads expire
	timeout time.Duration
	observe func(bool, time.Duration, error)
	// promoted is called when the timeline has changed, which readers of changes see
	promoted func()
	timeline atomic.Int64 // as last seen; 0: it was not yet
	pool     *pgxpool.Pool
	system   string // identifies the server and its standbys
	cluster  string
	process  string // as the column of owners has it

	unposted tables.Unposted

	// Of notifications.
	listener *pgxpool.Config // leads to the server itself
	origin   string          // of this process's own
	due      chan struct{}   // capacity 1: one is to be sent
	end      context.CancelFunc
	notifier sync.WaitGroup
}

var (
	_ store.Records       = (*DB)(nil)
	_ store.ProgressBoard = (*DB)(nil)
)

// Open connects to the database and migrates its schema.
func Open(ctx context.Context, c Config, o Options) (*DB, error) {
	db, err := open(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("open PostgreSQL: %w", err)
	}
	return db, nil
}

func open(ctx context.Context, c Config, o Options) (*DB, error) {
	db, err := connect(ctx, c, o)
	if err != nil {
		return nil, err
	}
	if err = db.checkServer(ctx); err == nil {
		_, _, err = db.migrate(ctx)
	}
	if err == nil {
		err = db.identify(ctx)
	}
	if err != nil {
		db.pool.Close()
		return nil, err
	}
	notifying, end := context.WithCancel(context.Background())
	db.end = end
	db.notifier.Go(func() { db.notifyUntil(notifying) })
	return db, nil
}

// connect returns a database whose schema is not checked.
func connect(ctx context.Context, c Config, o Options) (*DB, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Expiry == nil {
		if o.Expiry = o.Now; o.Expiry == nil {
			o.Expiry = time.Now
		}
	}
	config, err := poolConfig(c, o.Node)
	if err != nil {
		return nil, err
	}
	listener := config.Copy()
	if c.DirectURL != "" {
		direct := c
		direct.URL = c.DirectURL
		if listener, err = poolConfig(direct, o.Node); err != nil {
			return nil, fmt.Errorf("direct_%w", err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if config.ConnConfig.DefaultQueryExecMode, err = execMode(limited, c, config); err != nil {
		return nil, translate(ctx, err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if o.Observe == nil {
		o.Observe = func(bool, time.Duration, error) {}
	}
	if o.Promoted == nil {
		o.Promoted = func() {}
	}
	return &DB{now: o.Now, expiry: o.Expiry, timeout: c.Timeout, observe: o.Observe,
		promoted: o.Promoted, pool: pool, listener: listener, origin: rand.Text(),
		due: make(chan struct{}, 1)}, nil
}

// Close waits for running methods and closes the connections.
func (db *DB) Close() error {
	if db.end != nil {
		db.end()
		db.notifier.Wait()
	}
	db.pool.Close()
	return nil
}

// clock returns the argument @now of statements: the time of the tests' clock, or nil for the
// server's.
func (db *DB) clock() *int64 {
	if db.now == nil {
		return nil
	}
	now := tables.Micros(db.now())
	return &now
}

// serverNow is the time by which leases end, in statements with the argument @now.
const serverNow = "(SELECT coalesce(@now::bigint, tidefill_now()))"

// localNow is the time of this process, for times that no other process compares.
func (db *DB) localNow() time.Time {
	if db.now != nil {
		return db.now()
	}
	return time.Now()
}
