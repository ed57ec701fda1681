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
	// pingTimeout bounds the time in which a part of the store answers a look.
	pingTimeout = 2 * time.Second
	// registeredFresh is the age up to which it counts who was registered. It covers two looks,
	// each of which used up its time.
	registeredFresh = 2*(checkEvery+pingTimeout) + time.Second
)

// notLooked is why the store can't be used before the first look.
const notLooked = "it has not been looked at yet"

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

	registered   registered // as of registeredAt
	registeredAt time.Time  // zero: they were never read
	backAt       time.Time  // when the database was back after an outage; zero: there was none
}

// run looks until ctx ends. read reads which processes are registered.
func (c *storeCheck) run(
	ctx context.Context, s *store.Backend, read func(context.Context) (registered, error),
) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		c.look(ctx, s, read)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look asks all parts at once: each may use up the time.
func (c *storeCheck) look(
	ctx context.Context, s *store.Backend, read func(context.Context) (registered, error),
) {
	c.mu.Lock()
	c.begun = time.Now()
	c.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	var bucket, database, misplaced, older error
	var now registered
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
	if database = s.Records.Ping(limited); database == nil {
		now, database = read(limited)
	}
	asked.Wait()
	if ctx.Err() != nil {
		return // the daemon stops, which says nothing about the store
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.database != "" && database == nil {
		c.backAt = time.Now()
	}
	c.begun, c.ended = time.Time{}, time.Now()
	c.database, c.bucket = whyAway(database), whyAway(bucket)
	c.misplaced, c.older = whyAway(misplaced), ""
	if errors.Is(older, store.ErrOlder) {
		c.older = whyAway(older)
	}
	if database == nil {
		c.registered, c.registeredAt = now, c.ended
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
		return notLooked, ""
	}
	return c.database, c.bucket
}

// files returns why the files of the store are not within reach, and that the records are older
// than they; empty: all is well, as far as is known.
func (c *storeCheck) files() (misplaced, older string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.misplaced, c.older
}

// known returns the processes that the store knows. ok is false if that is not known, or is not
// worth anything: while the database is away nobody can renew a lease, and all of them need some
// time to do so when it is back.
func (c *storeCheck) known(renewal time.Duration) (now registered, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.registered, !c.registeredAt.IsZero() && c.database == "" &&
		time.Since(c.registeredAt) <= registeredFresh && time.Since(c.backAt) >= renewal
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
