package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/tidefill/tidefill/store"
)

// PostProgress implements [store.ProgressBoard].
func (db *DB) PostProgress(
	ctx context.Context, o store.Owner, posts map[string]store.ProgressPost,
) error {
	if len(posts) == 0 {
		return nil
	}
	docs := make(map[string][]byte, len(posts))
	for batch, p := range posts {
		truncate(&p.UpdatedAt)
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
			err := s.exec(ctx, `INSERT INTO progress (batch, node, incarnation, doc)
				SELECT id, ?, ?, ? FROM batches WHERE id = ?
				ON CONFLICT (batch, node)
					DO UPDATE SET incarnation = excluded.incarnation, doc = excluded.doc`,
				o.Node, o.Incarnation, doc, batch)
			if err != nil {
				return err
			}
		}
		return nil
	})
	db.unposted.note(o, posts, err)
	if err != nil {
		return fmt.Errorf("post progress of node %s: %w", o.Node, err)
	}
	return nil
}

// ProgressPosts implements [store.ProgressBoard].
func (db *DB) ProgressPosts(
	ctx context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	posts := map[string]map[string]store.ProgressPost{} // by batch and node
	list, err := jsonList(batches)
	if err == nil {
		err = db.read(ctx, func(s *session) error {
			return s.posts(ctx, list, posts)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	for _, batch := range batches {
		for _, post := range db.unposted.of(batch) {
			put(posts, batch, post)
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

func (s *session) posts(
	ctx context.Context, batches string, posts map[string]map[string]store.ProgressPost,
) error {
	var doc sql.RawBytes
	return s.rows(ctx, `SELECT batch, node, incarnation, doc FROM progress
			WHERE batch IN (SELECT value FROM json_each(?))`, []any{batches},
		func(rows *sql.Rows) error {
			var batch string
			var owner store.Owner
			if err := rows.Scan(&batch, &owner.Node, &owner.Incarnation, &doc); err != nil {
				return err
			}
			post, err := decode[store.ProgressPost](doc)
			post.Owner = owner
			put(posts, batch, post)
			return err
		})
}

func put(
	posts map[string]map[string]store.ProgressPost, batch string, post store.ProgressPost,
) {
	if posts[batch] == nil {
		posts[batch] = map[string]store.ProgressPost{}
	}
	posts[batch][post.Owner.Node] = post
}
