package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// A claim is never taken back in its row. It counts as long as owners has its node at its
// incarnation with a lease that lasts, so registering, unregistering and expiry free everything at
// once without touching a chunk.
const holderLives = `EXISTS (SELECT 1 FROM owners AS o
	WHERE o.node = c.node AND o.incarnation = c.incarnation AND o.lease_until > ?)`

// holds is holderLives, but for what the owner holds and doesn't have in hand. Its arguments are
// those of holdsArgs.
const holds = holderLives + ` AND NOT (c.node IS ? AND c.incarnation IS ? AND c.idx NOT IN (SELECT value FROM json_each(?)))`

func (db *DB) holdsArgs(o store.Owner, inHand []int) ([]any, error) {
	if inHand == nil {
		inHand = []int{}
	}
	list, err := idList(inHand)
	return []any{micros(db.now()), o.Node, o.Incarnation, list}, err
}

// Register implements [store.Claims].
func (db *DB) Register(ctx context.Context, node string, ttl time.Duration) (store.Owner, error) {
	o := store.Owner{Node: node}
	err := db.write(ctx, func(s *session) error {
		return s.row(ctx, `INSERT INTO owners (node, incarnation, lease_until) VALUES (?, 1, ?)
			ON CONFLICT (node) DO UPDATE SET incarnation = incarnation + 1, lease_until = excluded.lease_until
			RETURNING incarnation`, []any{node, micros(db.now().Add(ttl))}, &o.Incarnation)
	})
	if err != nil {
		return store.Owner{}, fmt.Errorf("register node %s: %w", node, err)
	}
	return o, nil
}

// Renew implements [store.Claims].
func (db *DB) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	err := db.write(ctx, func(s *session) error {
		return fencedUnlessOne(
			s.affect(ctx, "UPDATE owners SET lease_until = ? WHERE node = ? AND incarnation = ?",
				micros(db.now().Add(ttl)), o.Node, o.Incarnation))
	})
	if err != nil {
		return fmt.Errorf("renew lease of node %s: %w", o.Node, err)
	}
	return nil
}

// Unregister implements [store.Claims]. The next incarnation is the owner that nobody is.
func (db *DB) Unregister(ctx context.Context, o store.Owner) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(
			ctx, "UPDATE owners SET incarnation = incarnation + 1, lease_until = ? WHERE node = ? AND incarnation = ?",
			micros(db.now()), o.Node, o.Incarnation) // a time, for Newest
	})
	if err != nil {
		return fmt.Errorf("unregister node %s: %w", o.Node, err)
	}
	return nil
}

// LiveOwners implements [store.Owners]. An owner of this process whose posts a full disk refused is
// among them: its lease may end, as the disk takes no renewal either, and users ask why nothing
// moves.
func (db *DB) LiveOwners(
	ctx context.Context, owners []store.Owner,
) (live []store.Owner, err error) {
	now := micros(db.now())
	err = db.read(ctx, func(s *session) error {
		return s.rows(ctx, "SELECT node, incarnation FROM owners WHERE lease_until > ?", []any{now},
			func(rows *sql.Rows) error {
				var o store.Owner
				err := rows.Scan(&o.Node, &o.Incarnation)
				if slices.Contains(owners, o) {
					live = append(live, o)
				}
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("list live owners: %w", err)
	}
	for _, o := range owners {
		if db.unposted.has(o) && !slices.Contains(live, o) {
			live = append(live, o)
		}
	}
	return live, nil
}

// leased reports whether the owner's lease lasts; ErrFenced when it isn't the node's owner any
// more.
func (db *DB) leased(ctx context.Context, s *session, o store.Owner) (bool, error) {
	var until int64
	found := false
	err := s.rows(ctx, "SELECT lease_until FROM owners WHERE node = ? AND incarnation = ?",
		[]any{o.Node, o.Incarnation},
		func(rows *sql.Rows) error {
			found = true
			return rows.Scan(&until)
		})
	if err == nil && !found {
		err = store.ErrFenced
	}
	return until > micros(db.now()), err
}

// AddChunks implements [store.Claims].
func (db *DB) AddChunks(ctx context.Context, batch string, chunks []store.Chunk) error {
	err := db.add(ctx, func(s *session) error {
		var laidOut bool
		if err := s.row(ctx, "SELECT EXISTS (SELECT 1 FROM chunks WHERE batch = ?)", []any{batch},
			&laidOut); err != nil || laidOut {
			return err
		}
		for _, c := range chunks {
			err := s.exec(ctx, `INSERT INTO chunks (batch, idx, model, first, count, epoch, done, completed, failed, usage)
				VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, CAST('{}' AS BLOB))`, batch, c.Index, c.Model, c.First, c.Count)
			if orphan(err) {
				return store.ErrNotFound
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("lay out chunks of batch %s: %w", batch, err)
	}
	return nil
}

// ClaimChunks implements [store.Claims]. It adds nothing to the database, but what is claimed adds
// results to the medium.
func (db *DB) ClaimChunks(
	ctx context.Context, o store.Owner, batch, model string, n int, inHand []int,
) (claimed []store.Chunk, err error) {
	err = db.add(ctx, func(s *session) error {
		if living, err := db.leased(ctx, s, o); err != nil || !living {
			return err
		}
		held, err := db.holdsArgs(o, inHand)
		if err != nil {
			return err
		}
		args := append([]any{o.Node, o.Incarnation, batch, batch, model}, held...)
		claimed, err = s.chunks(ctx, `UPDATE chunks SET node = ?, incarnation = ?, epoch = epoch + 1
			WHERE batch = ? AND idx IN (SELECT idx FROM chunks AS c
				WHERE c.batch = ? AND c.model = ? AND c.done = 0 AND NOT (`+holds+`) ORDER BY c.idx LIMIT ?)
			RETURNING `+chunkColumns, append(args, max(n, 0))...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim chunks of batch %s: %w", batch, err)
	}
	// RETURNING promises no order
	slices.SortFunc(claimed, func(a, b store.Chunk) int { return a.Index - b.Index })
	return claimed, nil
}

// FinishChunk implements [store.Claims].
func (db *DB) FinishChunk(ctx context.Context, o store.Owner, c store.Chunk) error {
	usage, err := encode(c.Tally.Usage)
	if err != nil {
		return fmt.Errorf("finish chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	err = db.write(ctx, func(s *session) error {
		return s.settle(ctx, o, c, "SET done = 1, completed = ?, failed = ?, usage = ? WHERE true",
			c.Tally.Completed, c.Tally.Failed, usage)
	})
	if err != nil {
		return fmt.Errorf("finish chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	return nil
}

// ReleaseChunk implements [store.Claims].
func (db *DB) ReleaseChunk(ctx context.Context, o store.Owner, c store.Chunk) error {
	err := db.write(ctx, func(s *session) error {
		return s.settle(ctx, o, c, "SET node = NULL, incarnation = NULL WHERE NOT done")
	})
	if err != nil {
		return fmt.Errorf("release chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	return nil
}

// ReopenChunk implements [store.Claims].
func (db *DB) ReopenChunk(ctx context.Context, c store.Chunk) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(ctx, `UPDATE chunks SET done = 0, node = NULL, incarnation = NULL, completed = 0, failed = 0, usage = CAST('{}' AS BLOB)
			WHERE batch = ? AND idx = ? AND epoch = ? AND done AND EXISTS (SELECT 1 FROM batches WHERE id = batch AND ended = 0)`, c.Batch, c.Index, c.Epoch)
	})
	if err != nil {
		return fmt.Errorf("reopen chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	return nil
}

// settle ends a claim if it is the newest of its chunk. A lapsed lease doesn't matter as long as
// nobody made use of it.
func (s *session) settle(
	ctx context.Context, o store.Owner, c store.Chunk, change string, values ...any,
) error {
	return fencedUnlessOne(s.affect(ctx, "UPDATE chunks "+change+` AND batch = ? AND idx = ? AND epoch = ?
		AND node = ? AND incarnation = ? AND EXISTS (SELECT 1 FROM owners AS o WHERE o.node = ? AND o.incarnation = ?)`,
		append(values, c.Batch, c.Index, c.Epoch, o.Node, o.Incarnation, o.Node, o.Incarnation)...))
}

// Chunks implements [store.Claims].
func (db *DB) Chunks(ctx context.Context, batch string) (chunks []store.Chunk, err error) {
	err = db.read(ctx, func(s *session) error {
		chunks, err = s.chunks(
			ctx, "SELECT "+chunkColumns+" FROM chunks WHERE batch = ? ORDER BY idx", batch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list chunks of batch %s: %w", batch, err)
	}
	return chunks, nil
}

// CountChunks implements [store.Claims].
func (db *DB) CountChunks(
	ctx context.Context, o store.Owner, batch string, inHand []int,
) (n store.ChunkCounts, err error) {
	err = db.read(ctx, func(s *session) error {
		args, err := db.holdsArgs(o, inHand)
		if err != nil {
			return err
		}
		return s.row(ctx, `SELECT
				count(*) FILTER (WHERE NOT done AND NOT held), count(*) FILTER (WHERE NOT done AND held), count(*) FILTER (WHERE done)
			FROM (SELECT c.done AS done, (`+holds+`) AS held FROM chunks AS c WHERE c.batch = ?)`,
			append(args, batch), &n.Free, &n.Claimed, &n.Done)
	})
	if err != nil {
		return store.ChunkCounts{}, fmt.Errorf("count chunks of batch %s: %w", batch, err)
	}
	return n, nil
}

// LinesLeft implements [store.Claims].
func (db *DB) LinesLeft(ctx context.Context) (map[string]map[string]int, error) {
	left := map[string]map[string]int{}
	err := db.read(ctx, func(s *session) error {
		return s.rows(ctx, `SELECT c.batch, c.model, sum(CASE WHEN c.done THEN 0 ELSE c.count END)
			FROM batches AS b JOIN chunks AS c ON c.batch = b.id WHERE b.ended = 0 GROUP BY c.batch, c.model`, nil,
			func(rows *sql.Rows) error {
				var batch, model string
				var lines int
				err := rows.Scan(&batch, &model, &lines)
				if left[batch] == nil {
					left[batch] = map[string]int{}
				}
				left[batch][model] = lines
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("count the lines left of all batches: %w", err)
	}
	return left, nil
}

const chunkColumns = "batch, idx, model, first, count, epoch, done, completed, failed, usage"

func (s *session) chunks(
	ctx context.Context, query string, args ...any,
) (chunks []store.Chunk, err error) {
	var usage sql.RawBytes
	err = s.rows(ctx, query, args, func(rows *sql.Rows) error {
		var c store.Chunk
		err := rows.Scan(&c.Batch, &c.Index, &c.Model, &c.First, &c.Count, &c.Epoch, &c.Done,
			&c.Tally.Completed, &c.Tally.Failed, &usage)
		if err == nil && c.Done {
			c.Tally.Usage, err = decode[batchfile.Usage](usage)
		}
		chunks = append(chunks, c)
		return err
	})
	return chunks, err
}

// fencedUnlessOne turns the count of changed rows into the fate of a compare-and-set.
func fencedUnlessOne(changed int64, err error) error {
	if err == nil && changed != 1 {
		return store.ErrFenced
	}
	return err
}
