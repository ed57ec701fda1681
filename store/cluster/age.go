package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

const (
	// heartbeat is the name of the object beside the files with the number of a heartbeat.
	heartbeat = "heartbeat"
	// beatEvery is the time between two heartbeats while files are stored. A restore that loses
	// less than that may not be noticed.
	beatEvery = time.Minute
	// ageGoodFor is the time for which the age of the database is not asked for again.
	ageGoodFor = time.Minute
)

// age notices that the database was restored to a time before its newest files. The database counts
// a heartbeat, and then its number is written beside the files. So the number there is never
// higher, unless the database was restored.
type age struct {
	db    *postgres.DB
	place place
	log   *slog.Logger
	due   chan struct{} // capacity 1: a file was stored
	end   context.CancelFunc
	ended sync.WaitGroup

	mu     sync.Mutex
	asked  time.Time
	answer error
}

// newAge begins to write heartbeats.
func newAge(db *postgres.DB, p place, log *slog.Logger) *age {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &age{db: db, place: p, log: log, due: make(chan struct{}, 1)}
	beating, end := context.WithCancel(context.Background())
	a.end = end
	a.ended.Go(func() { a.beatUntil(beating) })
	return a
}

func (a *age) close() error {
	a.end()
	a.ended.Wait()
	return nil
}

// beatUntil writes a heartbeat when a file is stored, and then none for a while.
func (a *age) beatUntil(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.due:
		}
		if err := a.beat(ctx); err != nil && ctx.Err() == nil {
			a.log.DebugContext(ctx, "could not write a heartbeat, trying again", "error", err)
			a.stored()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(beatEvery):
		}
	}
}

func (a *age) beat(ctx context.Context) error {
	n, err := a.db.Beat(ctx)
	if err != nil {
		return err
	}
	return a.place.write(ctx, heartbeat, strconv.FormatInt(n, 10)+"\n", false)
}

// stored notes that a file was stored.
func (a *age) stored() {
	select {
	case a.due <- struct{}{}:
	default:
	}
}

// older returns an error while the database is older than its files, or that could not be found
// out.
func (a *age) older(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.asked.IsZero() && time.Since(a.asked) < ageGoodFor {
		return a.answer
	}
	var seen int64
	content, err := a.place.read(ctx, heartbeat)
	switch {
	case errors.Is(err, store.ErrNotFound): // none was written yet
	case err != nil:
		return fmt.Errorf("read the heartbeat: %w", err)
	default:
		if seen, err = strconv.ParseInt(strings.TrimSpace(content), 10, 64); err != nil {
			return fmt.Errorf("%s is damaged: %w; delete it", a.place.object(heartbeat), err)
		}
	}
	since, err := a.db.OlderSince(ctx, seen)
	if err != nil {
		return err
	}
	a.asked, a.answer = time.Now(), nil
	if !since.IsZero() {
		a.answer = fmt.Errorf("%w, as was found at %s: it was restored; run `tidefill store "+
			"check` to see which files are missing and which are known to no record, and then "+
			"`tidefill store check --accept`", store.ErrOlder, since.UTC().Format(time.RFC3339))
	}
	return a.answer
}

// agingBlobs has heartbeats follow what is stored.
type agingBlobs struct {
	store.Blobs
	age *age
}

// Create implements [store.Blobs].
func (b agingBlobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	w, err := b.Blobs.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return agingWriter{w, b.age}, nil
}

type agingWriter struct {
	store.BlobWriter
	age *age
}

// Commit implements [store.BlobWriter].
func (w agingWriter) Commit(ctx context.Context) error {
	err := w.BlobWriter.Commit(ctx)
	if err == nil {
		w.age.stored()
	}
	return err
}
