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
	ctx context.Context, o store.Owner, progress map[string]store.Progress,
) error {
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
	db.unposted.note(o.Node, progress, err)
	if err != nil {
		return fmt.Errorf("post progress of node %s: %w", o.Node, err)
	}
	return nil
}

// takeOff takes a chunk that is told done off what its claimant has posted.
func (s *session) takeOff(ctx context.Context, o store.Owner, c store.Chunk) error {
	if c.Posted == (store.Tally{}) {
		return nil
	}
	var doc []byte
	err := s.row(ctx, "SELECT doc FROM progress WHERE batch = ? AND node = ? AND incarnation = ?",
		[]any{c.Batch, o.Node, o.Incarnation}, &doc)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := decode[store.Progress](doc)
	if err != nil {
		return err
	}
	p.Completed -= c.Posted.Completed
	p.Failed -= c.Posted.Failed
	if doc, err = encode(p); err != nil {
		return err
	}
	return s.exec(ctx, "UPDATE progress SET doc = ? WHERE batch = ? AND node = ?", doc, c.Batch,
		o.Node)
}

// unposted is what nodes of this process said last about batches while the disk was full.
type unposted struct {
	mu   sync.Mutex
	said map[posting]store.Progress
}

type posting struct{ batch, node string }

// note remembers what found no room, and forgets all that once there is.
func (u *unposted) note(node string, progress map[string]store.Progress, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case err == nil:
		u.said = nil
	case errors.Is(err, store.ErrNoSpace):
		if u.said == nil {
			u.said = map[posting]store.Progress{}
		}
		for batch, p := range progress {
			u.said[posting{batch, node}] = p
		}
	}
}

// now is what stands.
func (u *unposted) now() map[posting]store.Progress {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.said)
}

// Progress implements [store.ProgressBoard].
func (db *DB) Progress(ctx context.Context, batches []string) (map[string]store.Progress, error) {
	sums := make(map[string]store.Progress, len(batches))
	list, err := idList(batches)
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	newer := db.unposted.now()
	err = db.snapshot(ctx, func(s *session) error {
		if err := s.tallies(ctx, list, sums); err != nil {
			return err
		}
		return s.posts(ctx, list, micros(db.now()), newer, sums)
	})
	if err != nil {
		return nil, fmt.Errorf("read progress: %w", err)
	}
	for said, p := range newer {
		if slices.Contains(batches, said.batch) {
			sums[said.batch] = sums[said.batch].Add(p)
		}
	}
	return sums, nil
}

// tallies adds what the batches' done chunks hold.
func (s *session) tallies(
	ctx context.Context, batches string, sums map[string]store.Progress,
) error {
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

// posts adds what living owners said, unless they said something newer. The words of earlier
// incarnations are about claims that are no more.
func (s *session) posts(
	ctx context.Context, batches string, now int64, newer map[posting]store.Progress,
	sums map[string]store.Progress,
) error {
	var doc sql.RawBytes
	return s.rows(ctx, `SELECT c.batch, c.node, c.doc FROM progress AS c
			WHERE c.batch IN (SELECT value FROM json_each(?)) AND `+holderLives+` ORDER BY c.batch, c.node`, []any{batches, now},
		func(rows *sql.Rows) error {
			var batch, node string
			if err := rows.Scan(&batch, &node, &doc); err != nil {
				return err
			}
			if _, superseded := newer[posting{batch, node}]; superseded {
				return nil
			}
			p, err := decode[store.Progress](doc)
			sums[batch] = sums[batch].Add(p)
			return err
		})
}
