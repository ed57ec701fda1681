package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// PostProgress implements [store.ProgressBoard]. What is said about a batch that was deleted meanwhile is dropped.
func (db *DB) PostProgress(ctx context.Context, o store.Owner, progress map[string]store.Progress) error {
	if len(progress) == 0 {
		return nil
	}
	docs := make(map[string][]byte, len(progress))
	for batch, p := range progress {
		whole(&p.UpdatedAt)
		doc, err := encode(p)
		if err != nil {
			return fmt.Errorf("post progress of batch %s: %w", batch, err)
		}
		docs[batch] = doc
	}
	err := db.write(ctx, func(s *session) error {
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
	if err != nil {
		return fmt.Errorf("post progress of node %s: %w", o.Node, err)
	}
	return nil
}

// Progress implements [store.ProgressBoard].
func (db *DB) Progress(ctx context.Context, batches []string) (map[string]store.Progress, error) {
	sums := make(map[string]store.Progress, len(batches))
	list, err := idList(batches)
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	err = db.snapshot(ctx, func(s *session) error {
		if err := s.tallies(ctx, list, sums); err != nil {
			return err
		}
		return s.posts(ctx, list, micros(db.now()), sums)
	})
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	return sums, nil
}

// tallies adds what the batches' done chunks hold.
func (s *session) tallies(ctx context.Context, batches string, sums map[string]store.Progress) error {
	return s.rows(ctx, `SELECT batch, sum(completed), sum(failed) FROM chunks
			WHERE done AND batch IN (SELECT value FROM json_each(?)) GROUP BY batch`, []any{batches},
		func(rows *sql.Rows) error {
			var batch string
			var p store.Progress
			err := rows.Scan(&batch, &p.Completed, &p.Failed)
			sums[batch] = p
			return err
		})
}

// posts adds what living owners said. The words of earlier incarnations are about claims that are no more.
func (s *session) posts(ctx context.Context, batches string, now int64, sums map[string]store.Progress) error {
	var doc sql.RawBytes
	return s.rows(ctx, `SELECT c.batch, c.doc FROM progress AS c
			WHERE c.batch IN (SELECT value FROM json_each(?)) AND `+holderLives+` ORDER BY c.batch, c.node`, []any{batches, now},
		func(rows *sql.Rows) error {
			var batch string
			if err := rows.Scan(&batch, &doc); err != nil {
				return err
			}
			p, err := decode[store.Progress](doc)
			sums[batch] = sums[batch].Add(p)
			return err
		})
}
