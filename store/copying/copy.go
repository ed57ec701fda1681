package copying

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Side is an open store that takes part in a copy.
type Side struct {
	// Name is how messages call the store, such as the name of its configuration.
	Name string
	// Place says where the store is, for the one that refuses to start after a move.
	Place   string
	Backend *store.Backend
}

// Options configures a copy. The zero value works.
type Options struct {
	// AllowMissing completes the copy although bytes of files are missing in the source.
	AllowMissing bool
	// Lease is the time for which a copy that was killed keeps others from the stores. Default: 30
	// s.
	Lease time.Duration
	// Progress is called now and then, by one goroutine at a time. Default: none.
	Progress func(Summary)
}

// Count counts objects of a copy.
type Count struct {
	Total int // in the source
	// Written are those that the target did not have, or had differently.
	Written int
	Removed int // those that only the target had
	Bytes   int64
}

// Summary reports what a copy did.
type Summary struct {
	// Moved reports that an earlier copy was complete, and nothing was done.
	Moved bool
	Rows  map[store.RowKind]Count
	// Blobs counts the bytes of files, line indexes and parts of uploads.
	Blobs Count
	// Replaced are blobs that the target had in the same size, with other bytes.
	Replaced int
	// Missing are the first blobs whose bytes the source does not have, and MissingBlobs the number
	// of all such blobs. Those of expired files do not count.
	Missing      []string
	MissingBlobs int
	// Elsewhere counts the files in storages of profiles, which stay there.
	Elsewhere      int
	ElsewhereBytes int64
	// Journals counts the results of batches that have not ended.
	Journals Count
	// DamagedBytes were skipped in the journals of the source. Their lines are sent again.
	DamagedBytes int64
}

// maxMissing limits the list of missing blobs.
const maxMissing = 10

// copier is one copy.
type copier struct {
	from, to Side
	opts     Options
	report   report
}

// Copy makes to equal to from, and then to the store that is in use. Both must be opened with
// store.OpenOptions.Moving. It is an error if another process uses one of them.
func Copy(ctx context.Context, from, to Side, o Options) (Summary, error) {
	if o.Lease <= 0 {
		o.Lease = defaultLease
	}
	c := &copier{from: from, to: to, opts: o}
	c.report.progress = o.Progress
	err := c.copy(ctx)
	if err != nil {
		err = fmt.Errorf("copy %s to %s: %w", from.Name, to.Name, err)
	}
	return c.report.current(), err
}

func (c *copier) copy(ctx context.Context) (err error) {
	held, release, err := c.lockBoth(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	err = c.copyAlone(held)
	if lost := context.Cause(held); errors.Is(lost, errLost) {
		return lost
	}
	return err
}

// copyAlone copies while no other copy can.
func (c *copier) copyAlone(ctx context.Context) error {
	owners, err := c.refuseRunning(ctx)
	if err != nil {
		return err
	}
	source, done, err := c.begin(ctx)
	if err != nil || done {
		return err
	}
	for _, step := range []func(context.Context) error{c.copyRows, c.copyBlobs, c.copyJournals,
		c.verifyRows, c.checkMissing} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	after, err := c.refuseRunning(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(owners, after) {
		return errors.New("a process used one of the stores meanwhile; stop all, and copy again")
	}
	return c.finish(ctx, source)
}

// refuseRunning returns the owners that both stores know besides copies. None of them is alive.
func (c *copier) refuseRunning(ctx context.Context) (owners []store.Owner, err error) {
	for _, side := range []Side{c.from, c.to} {
		known, err := side.Backend.Records.KnownOwners(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", side.Name, err)
		}
		others, err := side.Backend.OtherNodes()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", side.Name, err)
		}
		if len(others) > 0 {
			return nil, fmt.Errorf("%s: node %s runs; stop all processes of both stores",
				side.Name, others[0])
		}
		known = slices.DeleteFunc(known, func(o store.KnownOwner) bool {
			return strings.HasPrefix(o.Node, store.CopyNode)
		})
		for _, o := range known {
			if o.LeaseLeft > 0 {
				return nil, fmt.Errorf("%s: the lease of node %s lasts: it runs, or was killed "+
					"less than dispatch.tuning.lease_ttl ago; stop all processes of both stores, "+
					"and try again", side.Name, o.Node)
			}
			owners = append(owners, o.Owner)
		}
	}
	return owners, nil
}

// begin marks the target as incomplete. done reports that an earlier copy was complete.
func (c *copier) begin(ctx context.Context) (source store.Move, done bool, err error) {
	if source, err = c.from.Backend.Records.Move(ctx); err != nil {
		return source, false, fmt.Errorf("%s: %w", c.from.Name, err)
	}
	target, err := c.to.Backend.Records.Move(ctx)
	if err != nil {
		return source, false, fmt.Errorf("%s: %w", c.to.Name, err)
	}
	same := source.Installation != "" && source.Installation == target.Installation
	switch {
	case source.State == store.MoveReceiving:
		return source, false, fmt.Errorf("%s has only a part of %s; complete that copy first",
			c.from.Name, source.Peer)
	case source.State == store.MoveAway && !same:
		return source, false, fmt.Errorf("%s was moved to %s at %s; copy from that store",
			c.from.Name, source.Peer, source.At.Format(time.RFC3339))
	case source.State == store.MoveAway && target.State == store.MoveNone:
		c.report.update(func(s *Summary) { s.Moved = true })
		return source, true, nil
	case source.State == store.MoveAway && target.State == store.MoveAway:
		return source, false, fmt.Errorf("both were moved, %s to %s; copy from that store",
			c.from.Name, source.Peer)
	case target.State == store.MoveReceiving && !same:
		return source, false, fmt.Errorf("%s has a part of another store, %s; give an empty store",
			c.to.Name, target.Peer)
	case target.State == store.MoveAway && !same:
		return source, false, fmt.Errorf("%s has the data of another installation, which was "+
			"moved to %s; give an empty store", c.to.Name, target.Peer)
	case target.State == store.MoveNone:
		if err := c.refuseOccupied(ctx); err != nil {
			return source, false, err
		}
	}
	err = c.mark(ctx, &source)
	return source, false, err
}

// mark gives the source a name, and marks the target with it.
func (c *copier) mark(ctx context.Context, source *store.Move) error {
	if source.Installation == "" {
		source.Installation = rand.Text()
	}
	if source.At.IsZero() { // it has never moved: keep the name
		source.At = time.Now()
		if err := c.from.Backend.Records.SetMove(ctx, *source); err != nil {
			return fmt.Errorf("%s: %w", c.from.Name, err)
		}
	}
	err := c.to.Backend.Records.SetMove(ctx, store.Move{Installation: source.Installation,
		State: store.MoveReceiving, Peer: c.from.Place, At: time.Now()})
	if err != nil {
		return fmt.Errorf("%s: %w", c.to.Name, err)
	}
	return nil
}

// refuseOccupied returns an error if the target has records of users.
func (c *copier) refuseOccupied(ctx context.Context) error {
	for _, kind := range []store.RowKind{store.BatchRows, store.FileRows, store.UploadRows} {
		for _, err := range c.to.Backend.Records.ExportRows(ctx, kind) {
			if err != nil {
				return fmt.Errorf("%s: %w", c.to.Name, err)
			}
			return fmt.Errorf("%s is in use: it has %s of another installation; give an empty "+
				"store, with a database, a bucket or prefix, and a directory of its own", c.to.Name,
				kind)
		}
	}
	return nil
}

// finish marks the source as moved, and then the target as the store in use. In this order, so that
// a crash between the two leaves none that a daemon starts with, and the copy can be repeated.
func (c *copier) finish(ctx context.Context, source store.Move) error {
	now := time.Now()
	err := c.from.Backend.Records.SetMove(ctx, store.Move{Installation: source.Installation,
		State: store.MoveAway, Peer: c.to.Place, At: now})
	if err != nil {
		return fmt.Errorf("%s: %w", c.from.Name, err)
	}
	err = c.to.Backend.Records.SetMove(ctx, store.Move{Installation: source.Installation,
		Peer: c.from.Place, At: now})
	if err != nil {
		return fmt.Errorf("%s: %w", c.to.Name, err)
	}
	return nil
}
