package store

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/internal/byname"
)

// Records is all of the contract that is stored in records.
type Records interface {
	Files
	Uploads
	UploadParts
	Batches
	BatchLists
	Changes
	References
	Owners
	Claims
	Tallies
	Locks
	Leads
	LearnedStates
	PoolHistory
	Ledger
	Keys
	KeyUses
	Notices
	Status
	Portable
}

// Backend is an open store. Its fields may be of different systems. All are required but those that
// say when they are nil.
type Backend struct {
	Records Records
	// Progress is a [github.com/tidefill/tidefill/store/live.Medium] as well, if processes share
	// one.
	Progress ProgressBoard
	Blobs    Blobs
	Journals Journals
	Spool    Spool
	// Available returns the reason why the local medium can't be used; nil: it can.
	Available func() error
	// BucketAway returns the reason why the bucket with files and results can't be used now; nil:
	// it can. The field is nil without a bucket.
	BucketAway func(ctx context.Context) error
	// Misplaced returns why the bytes that this process reaches are not those that the records
	// refer to: a mount is gone, or a bucket was emptied; nil: they are, or that could not be found
	// out. The field is nil if both are one thing, as in the embedded store.
	Misplaced func(ctx context.Context) error
	// Older returns ErrOlder while the records are older than the bytes, since they were restored,
	// and another error if that could not be found out. Meanwhile bytes that no record refers to
	// must stay. The field is nil if both are one thing.
	Older func(ctx context.Context) error
	// Accept makes the place that holds the bytes that of the records, and ends what Older reports.
	// The field is nil unless the store was opened for that, or if both are one thing.
	Accept func(ctx context.Context) error
	// ClaimName registers a name for this process before it is used, for ttl. ErrUnavailable: the
	// lease of another process lasts that may have ended; try again until it is renewed, which is
	// another error, or ends. The field is nil where opening the store locks the name.
	ClaimName func(ctx context.Context, name string, ttl time.Duration) error
	// FreeBytes returns the free space of the local medium.
	FreeBytes func() (uint64, error)
	// CheckSpace returns ErrNoSpace while the local medium has no free space but its reserve.
	CheckSpace func() error
	// OtherNodes returns the names of the other processes that have the local medium open.
	OtherNodes func() ([]string, error)
	// Close flushes the journals and closes everything.
	Close func() error
}

// BackendConfig is the configuration of one backend: a struct whose fields have yaml tags and doc
// comments. The documentation of configuration keys is generated from both.
type BackendConfig interface {
	// Validate reports every fault. Each begins with the path of its field, such as "dsn: ".
	Validate() error
}

// MemoryHolder is a BackendConfig whose backend keeps more in memory than the embedded one does.
type MemoryHolder interface {
	// MemoryBytes returns the most that caches and buffers of the backend take.
	MemoryBytes() int64
}

// OpenOptions configures the opening of a backend.
type OpenOptions struct {
	// Config is the backend's own configuration, of the type of BackendFactory.Default.
	Config BackendConfig
	// Directory holds all data of the embedded backend, and temporary files of every backend.
	Directory string
	// Node is the name of this process. Two processes under one name are an error.
	Node string
	// Expiry is the clock by which files and uploads expire.
	Expiry func() time.Time
	Logger *slog.Logger
	// Moving opens a store also in the state of a move in which no daemon may use it.
	Moving bool
	// Accepting opens a store also if its bytes are not where the records know them to be.
	Accepting bool
	// Registerer takes the metrics of the backend. Nil: they are not registered.
	Registerer prometheus.Registerer
}

// BackendFactory opens one kind of backend.
type BackendFactory struct {
	// Default is the backend's configuration with its default values. It is a struct (not a
	// pointer). The configuration file has it below store, under the backend's name.
	Default BackendConfig
	// Open opens the backend and migrates its schema. It is called with a valid configuration.
	Open func(ctx context.Context, options OpenOptions) (*Backend, error)
	// Migrate migrates the schema as Open does, and nothing else, for tidefill migrate. Required; a
	// backend without a schema returns the zero Migration. dryRun: it changes nothing and returns
	// what it would do. A schema that is newer than this program is an error in both cases.
	Migrate func(ctx context.Context, options OpenOptions, dryRun bool) (Migration, error)
	// Backup copies a store that daemons may have open into a new directory, for tidefill store
	// backup. Nil: the backend is backed up by the means of its own systems.
	Backup func(ctx context.Context, options OpenOptions, to string) (Backup, error)
}

// Backup counts what a backup has besides the records.
type Backup struct {
	Blobs, Journals int
	CopiedBytes     int64 // of blobs and journals; the other bytes are shared with the store
}

// Migration is a change of a schema from one version to another; 0: there was no schema. Versions
// only grow.
type Migration struct{ From, To int }

var backends = byname.New[BackendFactory]("store backend")

// RegisterBackend makes a backend available to the key store.backend of the configuration. Call it
// from an init function. It panics if the name is empty or taken, if Default is not a struct, or
// without Open or Migrate, since these are mistakes of the program.
func RegisterBackend(name string, f BackendFactory) {
	if f.Default == nil || reflect.TypeOf(f.Default).Kind() != reflect.Struct {
		panic(fmt.Sprintf("register store backend %q: Default is a %T, not a struct", name,
			f.Default))
	}
	if f.Open == nil || f.Migrate == nil {
		panic(fmt.Sprintf("register store backend %q: Open or Migrate is nil", name))
	}
	backends.Register(name, f)
}

// FindBackend returns the backend that was registered under the name. The error of an unknown name
// lists the known ones.
func FindBackend(name string) (BackendFactory, error) { return backends.Get(name) }

// BackendSettings holds the configuration of every registered backend by the backend's name, also
// of those that are not selected. It is shared between copies of a configuration: do not change it.
type BackendSettings map[string]BackendConfig

// DefaultBackendSettings returns the defaults of every registered backend.
func DefaultBackendSettings() BackendSettings {
	all := BackendSettings{}
	for _, name := range backends.Names() {
		if f, err := backends.Get(name); err == nil {
			all[name] = f.Default
		}
	}
	return all
}
