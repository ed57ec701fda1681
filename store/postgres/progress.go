package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// PostEvery returns the least time between two posts of a process, since each is a transaction.
// With Redis they come as often as they change.
func (db *DB) PostEvery() time.Duration { return 2 * time.Second }

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
	all := args{"node": text(o.Node), "incarnation": o.Incarnation, "batches": texts(batches),
		"docs": docs}
	known := false
	err = db.writeUnlessDeleted(ctx, func(s *steps) {
		s.row(`WITH me AS MATERIALIZED (SELECT 1 FROM owners
				WHERE node = @node AND incarnation = @incarnation),
			posted AS (INSERT INTO progress AS old (batch, node, incarnation, doc)
				SELECT b.id, @node, @incarnation, p.doc FROM me,
					unnest(@batches::text[], @docs::bytea[]) AS p (batch, doc)
					JOIN batches AS b ON b.id = p.batch
				ON CONFLICT (batch, node) DO UPDATE
					SET incarnation = excluded.incarnation, doc = excluded.doc
					WHERE old.incarnation <= excluded.incarnation)
			SELECT EXISTS (SELECT 1 FROM me)`, all, &known)
	})
	if err == nil && !known {
		err = store.ErrFenced
	}
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
	var posts tables.Posts
	err := db.read(ctx, func(s *steps) {
		posts = tables.Posts{}
		s.rows(`SELECT batch, node, incarnation, doc FROM progress
			WHERE batch = ANY (@batches::text[])`, args{"batches": texts(batches)}, posts.Scan)
	})
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	return posts.With(&db.unposted, batches), nil
}
