package postgres

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// unposted holds the last posts of this process's owners that a full disk did not take.
type unposted struct {
	mu    sync.Mutex
	posts map[string]map[store.Owner]store.ProgressPost // by batch
}

// note adds the posts that a full disk refused, and drops all when a post was written.
func (u *unposted) note(o store.Owner, posts map[string]store.ProgressPost, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		u.posts = nil
	case errors.Is(err, store.ErrNoSpace):
		if u.posts == nil {
			u.posts = map[string]map[store.Owner]store.ProgressPost{}
		}
		for batch, post := range posts {
			if u.posts[batch] == nil {
				u.posts[batch] = map[store.Owner]store.ProgressPost{}
			}
			post.Owner = o
			u.posts[batch][o] = post
		}
	}
}

// of returns the posts about a batch.
func (u *unposted) of(batch string) []store.ProgressPost {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Values(u.posts[batch]))
}

// has reports whether a post of the owner is there.
func (u *unposted) has(o store.Owner) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, posts := range u.posts {
		if _, ok := posts[o]; ok {
			return true
		}
	}
	return false
}
