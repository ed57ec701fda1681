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
)

const (
	// readers is the number of reading sessions. Queries are short and run on the CPU, so a few
	// suffice.
	readers = 4
	// defaultLockWait is what Options.LockWait says if it says nothing.
	defaultLockWait = 5 * time.Second
)

// Options are what Open takes besides the path.
type Options struct {
	// Now stamps and judges leases, expiry and the like; time.Now by default.
	Now func() time.Time
	// Expiry is the time by which files and uploads expire; Now by default.
	Expiry func() time.Time
	// LockWait is how long a write waits for another process that holds the lock of the file; 5 s
	// by default.
	LockWait time.Duration
	// Space watches over the room on the file's medium; nil: nobody does.
	Space Space
}

// Space is the room on a medium, of which a reserve is kept for small writes that let room be made.
type Space interface {
	// Room returns store.ErrNoSpace while nothing but the reserve is left. What adds to the
	// database is refused then.
	CheckSpace() error
	// FreeReserve gives up the reserve for a write that found no room, and reports whether there was
	// one.
	FreeReserve() bool
}

// DB is an open database.
type DB struct {
	now      func() time.Time
	expiry   func() time.Time // by which files and uploads expire
	lockWait time.Duration
	space    Space
	pool     *sql.DB
	files    identity
	writer   *sessions
	readers  *sessions

	locked atomic.Bool // the last write that asked for the lock waited for it in vain

	unposted unposted
}

var _ interface {
	store.Files
	store.Uploads
	store.UploadParts
	store.Batches
	store.BatchLists
	store.Changes
	store.References
	store.Owners
	store.Claims
	store.Tallies
	store.Locks
	store.Leads
	store.ProgressBoard
	store.Keys
	store.Status
} = (*DB)(nil)

// Open opens the database file at path and brings its schema up to date; it creates the file and
// its directory if need be.
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Expiry == nil {
		opts.Expiry = opts.Now
	}
	if opts.LockWait <= 0 {
		opts.LockWait = defaultLockWait
	}
	db, err := open(ctx, path, opts)
	if short(err) && opts.Space != nil && opts.Space.FreeReserve() {
		db, err = open(ctx, path, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return db, nil
}

func open(ctx context.Context, path string, opts Options) (*DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	pool, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, err
	}
	db := &DB{now: opts.Now, expiry: opts.Expiry, lockWait: opts.LockWait, space: opts.Space,
		pool: pool, writer: newSessions(1), readers: newSessions(readers)}
	if err := db.start(ctx, path); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (db *DB) start(ctx context.Context, path string) error {
	if err := db.writer.open(ctx, db.pool); err != nil {
		return err
	}
	if err := db.migrate(ctx); err != nil {
		return err
	}
	if err := db.readers.open(ctx, db.pool); err != nil {
		return err
	}
	var err error
	db.files, err = identify(path, path+"-wal")
	return err
}

func dsn(path string) string {
	pragmas := url.Values{"_pragma": {
		"busy_timeout(250)", // between looks at the context, not in all: see session.retryBusy
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(ON)",
		// KiB per session, outside of the heap: the kernel caches the file anyway
		"cache_size(-4000)",
		"temp_store(MEMORY)",
		"journal_size_limit(16777216)", // what a large transaction adds to the WAL is given back
	}}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path),
		RawQuery: pragmas.Encode()}).String()
}

// Ping reports whether the database answers a query and stands where it was opened.
func (db *DB) Ping(ctx context.Context) error {
	err := db.files.check()
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	err = db.read(ctx, func(s *session) error {
		var newest int64
		return s.row(ctx, "SELECT newest FROM revisions", nil, &newest)
	})
	if err != nil {
		return fmt.Errorf("ping database: %w", err)
	}
	return nil
}

// Close waits for the methods under way and closes the file. Methods called later return an error.
func (db *DB) Close() error {
	return errors.Join(db.readers.close(), db.writer.close(), db.pool.Close())
}
