package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/store"
)

// PostProgress implements [store.ProgressBoard]. What is said about a batch that was deleted
// meanwhile is dropped.
func (db *DB) PostProgress(
	ctx context.Context, o store.Owner, posts map[string]store.ProgressPost,
) error {
	if len(posts) == 0 {
		return nil
	}
	docs := make(map[string][]byte, len(posts))
	for batch, p := range posts {
		whole(&p.UpdatedAt)
		doc, err := encode(p)
		if err != nil {
			return fmt.Errorf("post progress of batch %s: %w", batch, err)
		}
		docs[batch] = doc
	}
	err := db.attempt(ctx, func(s *session) error {
		if _, err := db.leased(ctx, s, o); err != nil {
			return err
		}
		for batch, doc := range docs {
			err := s.exec(ctx, `INSERT INTO progress (batch, node, incarnation, doc) SELECT id, ?, ?, ? FROM batches WHERE id = ?
				ON CONFLICT (batch, node) DO UPDATE SET incarnation = excluded.incarnation, doc = excluded.doc`,
				o.Node, o.Incarnation, doc, batch)
			if err != nil {
				return err
			}
		}
		return nil
	})
	db.unposted.note(o.Node, posts, err)
	if err != nil {
		return fmt.Errorf("post progress of node %s: %w", o.Node, err)
	}
	return nil
}

// unposted is what nodes of this process said last about batches while the disk was full.
type unposted struct {
	mu   sync.Mutex
	said map[posting]store.ProgressPost
}

type posting struct{ batch, node string }

// note remembers what found no room, and forgets all that once there is.
func (u *unposted) note(node string, posts map[string]store.ProgressPost, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		u.said = nil
	case errors.Is(err, store.ErrNoSpace):
		if u.said == nil {
			u.said = map[posting]store.ProgressPost{}
		}
		for batch, p := range posts {
			u.said[posting{batch, node}] = p
		}
	}
}

// now is what stands.
func (u *unposted) now() map[posting]store.ProgressPost {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.said)
}

// ProgressPosts implements [store.ProgressBoard].
func (db *DB) ProgressPosts(
	ctx context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	posts := map[string]map[string]store.ProgressPost{} // by batch and node
	list, err := idList(batches)
	if err == nil {
		err = db.read(ctx, func(s *session) error {
			return s.posts(ctx, list, micros(db.now()), posts)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	for at, post := range db.unposted.now() {
		if slices.Contains(batches, at.batch) {
			put(posts, at.batch, at.node, post)
		}
	}
	ordered := make(map[string][]store.ProgressPost, len(posts))
	for batch, byNode := range posts {
		for _, node := range slices.Sorted(maps.Keys(byNode)) {
			ordered[batch] = append(ordered[batch], byNode[node])
		}
	}
	return ordered, nil
}

// posts reads the posts of owners whose lease lasts. Posts of earlier incarnations are about claims
// that have ended.
func (s *session) posts(
	ctx context.Context, batches string, now int64, posts map[string]map[string]store.ProgressPost,
) error {
	var doc sql.RawBytes
	return s.rows(ctx, `SELECT c.batch, c.node, c.doc FROM progress AS c
			WHERE c.batch IN (SELECT value FROM json_each(?)) AND `+holderLives, []any{batches, now},
		func(rows *sql.Rows) error {
			var batch, node string
			if err := rows.Scan(&batch, &node, &doc); err != nil {
				return err
			}
			post, err := decode[store.ProgressPost](doc)
			put(posts, batch, node, post)
			return err
		})
}

func put(
	posts map[string]map[string]store.ProgressPost, batch, node string, post store.ProgressPost,
) {
	if posts[batch] == nil {
		posts[batch] = map[string]store.ProgressPost{}
	}
	posts[batch][node] = post
}
