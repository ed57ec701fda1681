package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidefill/tidefill/store"
)

func TestWatchAsksOnceForAll(t *testing.T) {
	meta := &countingStore{}
	s := newService(t, func(_ *Config, d *Deps) {
		meta.Metadata, meta.board = d.Metadata, d.Progress
		d.Metadata, d.Progress = meta, meta
	})
	input := s.upload(line("a"))
	var ids []string
	for range 5 {
		ids = append(ids, s.reading(input, store.InProgress).ID)
	}
	known := knownBatches{byID: map[string]store.Batch{}}
	refresh := func(reads int64, ids ...string) map[string]*snapshot {
		t.Helper()
		meta.times.Store(0)
		seen, err := s.server.watch.refresh(t.Context(), &known, ids)
		if err != nil || len(seen) != len(ids) {
			t.Fatalf("got %d snapshots, %v; want %d", len(seen), err, len(ids))
		}
		if got := meta.times.Load(); got != reads {
			t.Errorf("got %d reads, want %d", got, reads)
		}
		return seen
	}
	const changes, progress = 1, 2 // posts and done chunks
	refresh(changes+len64(ids)+progress, ids...)
	refresh(changes+progress, ids...)
	s.change(ids[2], func(b *store.Batch) { b.Paused = true })
	s.reading(input, store.InProgress) // without a stream
	if seen := refresh(changes+1+progress, ids...)[ids[2]]; !seen.batch.Paused ||
		!seen.shown.Tidefill.Paused {
		t.Error("the change is not in the snapshot")
	}
	refresh(changes+progress, ids[:3]...)
	refresh(changes+2+progress, ids...) // changes of the others were not tracked in the meantime
	s.change(ids[0], func(b *store.Batch) {
		b.State, b.CompletedAt = store.Completed, s.clock.now()
	})
	if seen := refresh(changes+1+progress, ids...)[ids[0]]; seen.shown.Status != store.Completed {
		t.Errorf("got status %s", seen.shown.Status)
	}
	s.do("DELETE", "/v1/batches/"+ids[0], nil).ok()
	refresh(changes+progress, ids[1:]...)
	if seen := refresh(changes+1+progress,
		ids...)[ids[0]]; answerTo(seen.err).Status != http.StatusNotFound {
		t.Errorf("got %v for a deleted batch", seen.err)
	}
}

func len64[T any](items []T) int64 { return int64(len(items)) }

func TestStreamsShareAWatch(t *testing.T) {
	s := newService(t)
	input := s.upload(line("a"))
	ids := []string{s.reading(input, store.InProgress).ID, s.reading(input, store.InProgress).ID}
	var listening, reading sync.WaitGroup
	ends := make(chan string, 8)
	for i := range cap(ends) {
		r := s.listen(ids[i%2])
		listening.Add(1)
		reading.Go(func() {
			started := sync.OnceFunc(listening.Done)
			readEvents(t, r, func(e event) bool {
				started()
				if e.name == "done" {
					ends <- answer{t: t, body: e.data}.object()["id"].(string)
				}
				return false
			})
		})
	}
	listening.Wait()
	for _, id := range ids {
		s.change(id, func(b *store.Batch) {
			b.State, b.CompletedAt = store.Completed, s.clock.now()
		})
	}
	reading.Wait()
	close(ends)
	ended := map[string]int{}
	for id := range ends {
		ended[id]++
	}
	if ended[ids[0]] != 4 || ended[ids[1]] != 4 {
		t.Errorf("got ends %v, want four of each", ended)
	}
	w := &s.server.watch
	s.eventually("the watch to end", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.cancel == nil && len(w.streams) == 0 && len(w.snapshots) == 0
	})
}

// failingChanges is a store that fails to list changes.
type failingChanges struct{ Metadata }

func (failingChanges) ChangedBatches(
	context.Context, store.Cursor, int,
) ([]string, store.Cursor, error) {
	return nil, "", errors.New("disk failure")
}

// outage is a store that can be away for a while.
type outage struct {
	Metadata
	away atomic.Bool
}

func (m *outage) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) ([]string, store.Cursor, error) {
	if m.away.Load() {
		return nil, "", fmt.Errorf("list changes: %w: secret", store.ErrUnavailable)
	}
	return m.Metadata.ChangedBatches(ctx, after, limit)
}

// A stream says that the store is away, and goes on when it is back.
func TestStreamsOutliveAnOutage(t *testing.T) {
	meta := &outage{}
	s := newService(t, func(_ *Config, d *Deps) {
		meta.Metadata = d.Metadata
		d.Metadata = meta
	})
	id := s.reading(s.upload(line("a")), store.InProgress).ID
	var got []string
	meta.away.Store(true) // before the first round
	readEvents(t, s.listen(id), func(e event) bool {
		got = append(got, e.name)
		if e.name != "reason" {
			return false
		}
		if strings.Contains(e.data, `"waiting":"store_unreachable: `) {
			meta.away.Store(false)
			return false
		}
		return strings.Contains(e.data, `"waiting":null`)
	})
	if want := []string{"state", "reason", "reason"}; !slices.Equal(got, want) {
		t.Errorf("got the events %v, want %v", got, want)
	}
}

func TestStreamsEndWhenTheStoreFails(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Metadata = failingChanges{d.Metadata} })
	id := s.create(line("a"))["id"].(string)
	var got []string
	readEvents(t, s.listen(id), func(e event) bool { got = append(got, e.name); return false })
	if len(got) != 2 || got[0] != "state" || got[1] != "progress" {
		t.Errorf("got %v, want the events of the first read and no more", got)
	}
}
