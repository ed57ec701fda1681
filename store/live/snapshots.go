package live

import (
	"context"
	"time"
)

// Snapshot is what one process published about something at one time.
type Snapshot struct {
	// Name is of what it is, such as a node or a pool. Of each name there is one snapshot.
	Name string
	Node string // that published it
	// Epoch is that of the publisher's leadership, or of its registration.
	Epoch int64
	Data  []byte
	// Age is the time since it was published, by the clock of the medium. Set by Snapshots.
	Age time.Duration
}

// KeepSnapshots is the time for which a snapshot is kept that nobody publishes again. Publishers
// publish every few seconds, so an older one is of a process that has ended.
const KeepSnapshots = 30 * time.Second

// Snapshots are published by leaders and shown by all processes. Methods return within some hundred
// milliseconds, also if the medium is away.
type Snapshots interface {
	// Publish replaces the snapshot of its kind and name. ErrFenced: one of a higher epoch is
	// there. ErrUnavailable: it is not published; try again with the next one.
	Publish(ctx context.Context, kind string, s Snapshot) error
	// Snapshots returns the last snapshots of a kind, by name. Those that are older than
	// KeepSnapshots are absent, and any may be. ErrUnavailable: nothing is known; the caller shows
	// what it knew before, or what the store has.
	Snapshots(ctx context.Context, kind string) ([]Snapshot, error)
}
