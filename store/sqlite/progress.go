package sqlite

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// PostProgress implements [store.ProgressBoard].
func (db *DB) PostProgress(
	ctx context.Context, o store.Owner, posts map[string]store.ProgressPost,
) error {
	if len(posts) == 0 {
		return nil
	}
	batches, docs, err := tables.EncodePosts(posts)
	if err != nil {
		return err
	}
	err = db.attempt(ctx, func(s *session) error {
		if _, err := db.leased(ctx, s, o); err != nil {
			return err
		}
		for i, batch := range batches {
			err := s.exec(ctx, `INSERT INTO progress (batch, node, incarnation, doc)
				SELECT id, ?, ?, ? FROM batches WHERE id = ?
				ON CONFLICT (batch, node)
					DO UPDATE SET incarnation = excluded.incarnation, doc = excluded.doc`,
				o.Node, o.Incarnation, docs[i], batch)
			if err != nil {
				return err
			}
		}
		return nil
	})
	db.unposted.Note(o, posts, err)
	if err != nil {
		return fmt.Errorf("post progress of node %s: %w", o.Node, err)
	}
	return nil
}

// ProgressPosts implements [store.ProgressBoard].
func (db *DB) ProgressPosts(
	ctx context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	posts := tables.Posts{}
	list, err := jsonList(batches)
	if err == nil {
		err = db.read(ctx, func(s *session) error {
			return s.rows(ctx, `SELECT batch, node, incarnation, doc FROM progress
				WHERE batch IN (SELECT value FROM json_each(?))`, []any{list},
				posts.Scan)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	return posts.With(&db.unposted, batches), nil
}
