package live

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Board is a [store.ProgressBoard] within one process.
type Board struct {
	mu    sync.Mutex
	posts map[string]map[string]boardPost // by batch and node
	swept time.Time
}

type boardPost struct {
	store.ProgressPost
	at time.Time
}

// The board drops posts of this age. Dispatchers post again before.
const (
	keepPosts      = time.Minute
	postAgainEvery = 15 * time.Second
)

var _ store.ProgressBoard = (*Board)(nil)

// NewBoard returns an empty board.
func NewBoard() *Board { return &Board{posts: map[string]map[string]boardPost{}} }

// PostAgainEvery returns the interval at which posts are to be repeated.
func (b *Board) PostAgainEvery() time.Duration { return postAgainEvery }

// PostProgress implements [store.ProgressBoard].
func (b *Board) PostProgress(
	_ context.Context, o store.Owner, posts map[string]store.ProgressPost,
) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if now.Sub(b.swept) >= keepPosts {
		b.swept = now
		for batch, byNode := range b.posts {
			maps.DeleteFunc(byNode, func(_ string, p boardPost) bool {
				return now.Sub(p.at) >= keepPosts
			})
			if len(byNode) == 0 {
				delete(b.posts, batch)
			}
		}
	}
	var fenced error
	for batch, post := range posts {
		if known := b.posts[batch][o.Node]; known.Owner.Incarnation > o.Incarnation {
			fenced = fmt.Errorf("post progress of node %s: %w", o.Node, store.ErrFenced)
			continue
		}
		if b.posts[batch] == nil {
			b.posts[batch] = map[string]boardPost{}
		}
		post.Owner, post.Chunks = o, slices.Clone(post.Chunks)
		post.UpdatedAt = post.UpdatedAt.UTC().Truncate(time.Microsecond)
		b.posts[batch][o.Node] = boardPost{post, now}
	}
	return fenced
}

// ProgressPosts implements [store.ProgressBoard].
func (b *Board) ProgressPosts(
	_ context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string][]store.ProgressPost{}
	for _, batch := range batches {
		byNode := b.posts[batch]
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			post := byNode[node].ProgressPost
			post.Chunks = slices.Clone(post.Chunks)
			all[batch] = append(all[batch], post)
		}
	}
	return all, nil
}
