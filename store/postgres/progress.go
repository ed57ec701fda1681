package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidefill/tidefill/store"
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
	batches, docs := make([]string, 0, len(posts)), make([][]byte, 0, len(posts))
	for batch, p := range posts {
		truncate(&p.UpdatedAt)
		doc, err := encode(p)
		if err != nil {
			return fmt.Errorf("post progress of batch %s: %w", batch, err)
		}
		batches, docs = append(batches, text(batch)), append(docs, doc)
	}
	all := args{"node": text(o.Node), "incarnation": o.Incarnation, "batches": batches,
		"docs": docs}
	known := false
	err := db.writeUnlessDeleted(ctx, func(s *steps) {
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
	var posts map[string]map[string]store.ProgressPost // by batch and node
	err := db.read(ctx, func(s *steps) {
		posts = map[string]map[string]store.ProgressPost{}
		s.rows(`SELECT batch, node, incarnation, doc FROM progress
			WHERE batch = ANY (@batches::text[])`, args{"batches": texts(batches)},
			func(rows pgx.Rows) error {
				var batch string
				var owner store.Owner
				var doc []byte
				if err := rows.Scan(&batch, &owner.Node, &owner.Incarnation, &doc); err != nil {
					return err
				}
				post, err := decode[store.ProgressPost](doc)
				owner.Node = plain(owner.Node)
				post.Owner = owner
				put(posts, plain(batch), post)
				return err
			})
	})
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

func put(
	posts map[string]map[string]store.ProgressPost, batch string, post store.ProgressPost,
) {
	if posts[batch] == nil {
		posts[batch] = map[string]store.ProgressPost{}
	}
	posts[batch][post.Owner.Node] = post
}
