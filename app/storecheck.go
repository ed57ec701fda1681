package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// checkEvery is the time between two looks at the store.
	checkEvery = 2 * time.Second
	// pingTimeout bounds how long a part of the store may take to answer one.
	pingTimeout = 2 * time.Second
	// ownersFresh is the age up to which it counts who was registered. It covers two looks, each
	// of which used up its time.
	ownersFresh = 2*(checkEvery+pingTimeout) + time.Second
)

// storeCheck looks at the store again and again, and keeps what it saw: who asks for the readiness
// of the daemon is answered from memory, however long the store takes.
type storeCheck struct {
	mu    sync.Mutex
	begun time.Time // of the look under way; zero: none is
	ended time.Time // of the last look; zero: there was none
	// database and bucket say why the part can't be used; empty: it can
	database, bucket string
	// misplaced says why the files of the store are not within reach, and older that the records
	// are older than the files; empty: all is well
	misplaced, older string

	owners   []store.KnownOwner // as of ownersAt
	ownersAt time.Time          // zero: they were never read
}

// run looks until ctx ends. Who is registered is looked at while somebody needs that.
func (c *storeCheck) run(ctx context.Context, s *store.Backend, needsOwners func() bool) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		c.look(ctx, s, needsOwners())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks all parts at once: each may use up the time.
func (c *storeCheck) look(ctx context.Context, s *store.Backend, owned bool) {
	c.mu.Lock()
	c.begun = time.Now()
	c.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	var bucket, database, misplaced, older error
	var owners []store.KnownOwner
	var asked sync.WaitGroup
	if s.BucketAway != nil {
		asked.Go(func() { bucket = s.BucketAway(limited) })
	}
	if s.Misplaced != nil {
		asked.Go(func() { misplaced = s.Misplaced(limited) })
	}
	if s.Older != nil {
		asked.Go(func() { older = s.Older(limited) })
	}
	if database = s.Records.Ping(limited); database == nil && owned {
		owners, database = s.Records.KnownOwners(limited)
	}
	asked.Wait()
	if ctx.Err() != nil {
		return // the daemon stops, which says nothing about the store
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.begun, c.ended = time.Time{}, now
	c.database, c.bucket = whyAway(database), whyAway(bucket)
	c.misplaced, c.older = whyAway(misplaced), ""
	if errors.Is(older, store.ErrOlder) {
		c.older = whyAway(older)
	}
	if database == nil && owned {
		c.owners, c.ownersAt = owners, now
	}
}

// away returns why the records can't be used, and why the bucket can't; empty: they can.
func (c *storeCheck) away() (database, bucket string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := !c.begun.IsZero() && time.Since(c.begun) > pingTimeout+checkEvery
	switch {
	case late:
		return whyAway(context.DeadlineExceeded), c.bucket
	case c.ended.IsZero():
		return "it has not been looked at yet", ""
	}
	return c.database, c.bucket
}

// files returns why the files of the store are not within reach, and that the records are older than
// they; empty: all is well, as far as is known.
func (c *storeCheck) files() (misplaced, older string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.misplaced, c.older
}

// known returns the processes that the store knows, and for how long it was so. ok is false if that
// is not known, or too old.
func (c *storeCheck) known() (owners []store.KnownOwner, age time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age = time.Since(c.ownersAt)
	return c.owners, age, !c.ownersAt.IsZero() && age <= ownersFresh
}

// whyAway returns an error as one line, for people. Empty: there is none.
func whyAway(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer within %v", pingTimeout)
	}
	return oneLine(err.Error())
}

// oneLine joins the lines of a text, each once: a driver lists an address again for each way in
// which it has tried it.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	joined := strings.Join(lines, "; ")
	return strings.ReplaceAll(joined, ":; ", ": ")
}
