package sqlite_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/sqlite"
	"github.com/tidefill/tidefill/store/storetest"
)

func TestMetadata(t *testing.T) {
	storetest.TestMetadata(t, func(t *testing.T, now func() time.Time) storetest.Store {
		return storetest.StoreOf(open(t, filepath.Join(t.TempDir(), "tidefill.db"), now))
	})
}

// memoryBoard is a board that knows no leases and no batches.
type memoryBoard struct {
	mu    sync.Mutex
	posts map[string]map[string]store.ProgressPost // by batch and node
}

func (b *memoryBoard) PostProgress(
	_ context.Context, o store.Owner, posts map[string]store.ProgressPost,
) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for batch, post := range posts {
		if b.posts[batch] == nil {
			b.posts[batch] = map[string]store.ProgressPost{}
		}
		if b.posts[batch][o.Node].Owner.Incarnation <= o.Incarnation {
			post.Owner = o
			b.posts[batch][o.Node] = post
		}
	}
	return nil
}

func (b *memoryBoard) ProgressPosts(
	_ context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	posts := map[string][]store.ProgressPost{}
	for _, batch := range batches {
		for _, node := range slices.Sorted(maps.Keys(b.posts[batch])) {
			posts[batch] = append(posts[batch], b.posts[batch][node])
		}
	}
	return posts, nil
}

// Claims and progress may live in different systems.
func TestProgressOfAnotherSystem(t *testing.T) {
	storetest.TestProgress(t, func(t *testing.T, now func() time.Time) storetest.Store {
		s := storetest.StoreOf(open(t, filepath.Join(t.TempDir(), "tidefill.db"), now))
		s.ProgressBoard = &memoryBoard{posts: map[string]map[string]store.ProgressPost{}}
		return s
	})
}

func TestPostsOfASupersededOwnerAreRefused(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "tidefill.db"), time.Now)
	o, err := db.Register(t.Context(), "n", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Unregister(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	err = db.PostProgress(t.Context(), o, map[string]store.ProgressPost{"b": {}})
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("post after unregistering: got %v, want %v", err, store.ErrFenced)
	}
}

func open(t testing.TB, path string, now func() time.Time) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), path, sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}
