package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

const (
	// readers is the number of reading sessions. Queries are short and use the CPU, so a few
	// suffice.
	readers = 4
	// defaultLockWait is the default of Options.LockWait.
	defaultLockWait = 5 * time.Second
)

// Options configures Open.
type Options struct {
	// Now is the clock of leases, creation times and keys. Default: time.Now.
	Now func() time.Time
	// Expiry is the clock by which files and uploads expire. Default: Now.
	Expiry func() time.Time
	// LockWait limits the time that a write waits for another process that holds the lock of the
	// file. Default: 5 s.
	LockWait time.Duration
	// Space checks the free space of the file's medium; nil: it is not checked.
	Space Space
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Expiry == nil {
		o.Expiry = o.Now
	}
	if o.LockWait <= 0 {
		o.LockWait = defaultLockWait
	}
	return o
}

// Space checks the free space of a medium and has a reserve of it for small writes.
type Space interface {
	// CheckSpace returns store.ErrNoSpace while there is no free space except the reserve. Writes
	// that let the database grow are refused then.
	CheckSpace() error
	// FreeReserve releases the reserve for a write that found no space, and reports whether there
	// was one.
	FreeReserve() bool
}

// DB is an open database.
type DB struct {
	now      func() time.Time
	expiry   func() time.Time // by which files and uploads expire
	lockWait time.Duration
	space    Space
	path     string
	pool     *sql.DB
	files    identity
	writer   *sessions
	readers  *sessions

	locked atomic.Bool // the last write that requested the lock did not get it

	unposted tables.Unposted
}

var (
	_ store.Records       = (*DB)(nil)
	_ store.ProgressBoard = (*DB)(nil)
)

// Open opens the database file at path and migrates its schema. It creates the file and its
// directory if they do not exist.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	opts = opts.withDefaults()
	db, err := open(ctx, path, opts)
	if maybeFull(err) && opts.Space != nil && opts.Space.FreeReserve() {
		db, err = open(ctx, path, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return db, nil
}

func open(ctx context.Context, path string, opts Options) (*DB, error) {
	db, err := openPool(path, opts)
	if err != nil {
		return nil, err
	}
	if err := db.start(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openPool returns a database without sessions.
func openPool(path string, opts Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	if err := create(path); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, err
	}
	return &DB{now: opts.Now, expiry: opts.Expiry, lockWait: opts.LockWait, space: opts.Space,
		path: path, pool: pool, writer: newSessions(1), readers: newSessions(readers)}, nil
}

// create makes an empty file of a database unless it exists. SQLite would let every user of the
// machine read it. Its files beside the database have the mode of that.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

func (db *DB) openSessions(ctx context.Context) error {
	if err := db.writer.open(ctx, db.pool); err != nil {
		return err
	}
	return db.readers.open(ctx, db.pool)
}

func (db *DB) start(ctx context.Context) error {
	if err := db.openSessions(ctx); err != nil {
		return err
	}
	if err := db.migrate(ctx); err != nil {
		return err
	}
	var err error
	db.files, err = identify(db.path, db.path+"-wal")
	return err
}

func dsn(path string) string {
	pragmas := url.Values{"_pragma": {
		"busy_timeout(250)", // of one try; see begin
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(ON)",
		// KiB per session, outside of the heap: the kernel caches the file anyway
		"cache_size(-4000)",
		"temp_store(MEMORY)",
		"journal_size_limit(16777216)", // the WAL shrinks after a large transaction
	}}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path),
		RawQuery: pragmas.Encode()}).String()
}

// Close waits for running methods and closes the file. Methods that are called later return an
// error.
func (db *DB) Close() error {
	return errors.Join(db.readers.close(), db.writer.close(), db.pool.Close())
}
