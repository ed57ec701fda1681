package store

import (
	"context"
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/internal/registry"
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
	Keys
	Status
}

// Backend is an open store. Its fields may be of different systems.
type Backend struct {
	Records  Records
	Progress ProgressBoard
	Blobs    Blobs
	Journals Journals
	Spool    Spool
	// Available returns the reason why the local medium can't be used; nil: it can.
	Available func() error
	// FreeBytes returns the free space of the local medium.
	FreeBytes func() (uint64, error)
	// Close flushes the journals and closes everything.
	Close func() error
}

// OpenOptions configures the opening of a backend.
type OpenOptions struct {
	// Directory holds all data of the embedded backend, and temporary files of every backend.
	Directory string
	// Node is the name of this process. Two processes under one name are an error.
	Node string
	// ReserveBytes is the space on the file system of Directory that is left free.
	ReserveBytes int64
	// LockWait limits how long a write waits for another process.
	LockWait time.Duration
	// Expiry is the clock by which files and uploads expire.
	Expiry func() time.Time
	Logger *slog.Logger
}

// Opener opens a backend.
type Opener func(ctx context.Context, options OpenOptions) (*Backend, error)

var backends = registry.New[Opener]("store backend")

// RegisterBackend makes a backend available to the key store.backend of the configuration. Packages
// of backends call it when they are initialized.
func RegisterBackend(name string, open Opener) { backends.Register(name, open) }

// FindBackend returns the backend that was registered under the name. The error of an unknown name
// lists the known ones.
func FindBackend(name string) (Opener, error) { return backends.Get(name) }
