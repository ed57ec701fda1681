package tables

import (
	"errors"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// Unposted holds the last posts of this process's owners that a full disk did not take.
type Unposted struct {
	mu    sync.Mutex
	posts map[string]map[store.Owner]store.ProgressPost // by batch
}

// Note adds the posts that a full disk refused, and drops all when a post was written.
func (u *Unposted) Note(o store.Owner, posts map[string]store.ProgressPost, err error) {
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

// addTo adds the posts about a batch.
func (u *Unposted) addTo(posts Posts, batch string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, post := range u.posts[batch] {
		posts.add(batch, post)
	}
}

// LiveOf returns those of the owners that are live, or that have a post here. Their leases may end,
// as the disk takes no renewal either, and users ask why nothing moves.
func (u *Unposted) LiveOf(owners, live []store.Owner) (found []store.Owner) {
	for _, o := range owners {
		if slices.Contains(live, o) || u.has(o) {
			found = append(found, o)
		}
	}
	return found
}

func (u *Unposted) has(o store.Owner) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, posts := range u.posts {
		if _, ok := posts[o]; ok {
			return true
		}
	}
	return false
}
