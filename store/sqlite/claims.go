package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// holderLeased is the condition that the holder of c has a lease that lasts. Rows are not changed
// when a claim ends with its owner: registering, unregistering and the end of a lease free
// everything at once.
const holderLeased = `EXISTS (SELECT 1 FROM owners AS o
	WHERE o.node = c.node AND o.incarnation = c.incarnation AND o.lease_until > ?)`

// heldFor is the condition that chunk c is not free for an owner: its holder has a lease, and is
// not that owner with a chunk that it does not list as held. Its arguments are those of
// heldForArgs.
const heldFor = holderLeased + ` AND NOT (c.node IS ? AND c.incarnation IS ?
	AND c.idx NOT IN (SELECT value FROM json_each(?)))`

func (db *DB) heldForArgs(o store.Owner, held []int) ([]any, error) {
	if held == nil {
		held = []int{}
	}
	list, err := jsonList(held)
	return []any{tables.Micros(db.now()), o.Node, o.Incarnation, list}, err
}

// AddChunks implements [store.Claims].
func (db *DB) AddChunks(ctx context.Context, batch string, chunks []store.Chunk) error {
	err := db.add(ctx, func(s *session) error {
		var exist bool
		if err := s.row(ctx, "SELECT EXISTS (SELECT 1 FROM chunks WHERE batch = ?)", []any{batch},
			&exist); err != nil || exist {
			return err
		}
		for _, c := range chunks {
			err := s.exec(ctx, `INSERT INTO chunks
				(batch, idx, model, first, count, epoch, done, completed, failed, usage, counted)
				VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, CAST('{}' AS BLOB), 0)`,
				batch, c.Index, c.Model, c.First, c.Count)
			if isOrphan(err) {
				return store.ErrNotFound
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add chunks of batch %s: %w", batch, err)
	}
	return nil
}

// ClaimChunks implements [store.Claims]. It needs free space like an insert, since the claimed
// chunks add results to the medium.
func (db *DB) ClaimChunks(
	ctx context.Context, o store.Owner, batch, model string, n int, held []int,
) (claimed []store.Chunk, err error) {
	err = db.add(ctx, func(s *session) error {
		if leased, err := db.leased(ctx, s, o); err != nil || !leased {
			return err
		}
		held, err := db.heldForArgs(o, held)
		if err != nil {
			return err
		}
		args := append([]any{o.Node, o.Incarnation, batch, batch, model}, held...)
		claimed, err = s.chunks(ctx, `UPDATE chunks SET node = ?, incarnation = ?, epoch = epoch + 1
			WHERE batch = ? AND idx IN (SELECT idx FROM chunks AS c
				WHERE c.batch = ? AND c.model = ? AND c.done = 0 AND NOT (`+heldFor+`) ORDER BY c.idx LIMIT ?)
			RETURNING `+tables.ChunkColumns, append(args, max(n, 0))...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("claim chunks of batch %s: %w", batch, err)
	}
	// RETURNING has no order
	slices.SortFunc(claimed, func(a, b store.Chunk) int { return a.Index - b.Index })
	return claimed, nil
}

// FinishChunks implements [store.Claims].
func (db *DB) FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error {
	hour := tables.Micros(db.now().Truncate(time.Hour))
	err := db.write(ctx, func(s *session) error {
		for _, c := range chunks {
			if err := s.finish(ctx, o, c, hour); err != nil {
				return fmt.Errorf("finish chunk %d of batch %s: %w", c.Index, c.Batch, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("finish %d chunks: %w", len(chunks), err)
	}
	return nil
}

func (s *session) finish(
	ctx context.Context, o store.Owner, c store.Chunk, hour int64,
) error {
	usage, err := tables.EncodeTally(c.Tally)
	if err != nil {
		return err
	}
	const change = `SET done = 1, completed = ?, failed = ?, usage = ?,
		counted = CASE WHEN done THEN counted ELSE ? END WHERE true`
	return s.endClaim(ctx, o, c, change, c.Tally.Completed, c.Tally.Failed, usage, hour)
}

// ReleaseChunk implements [store.Claims].
func (db *DB) ReleaseChunk(ctx context.Context, o store.Owner, c store.Chunk) error {
	err := db.write(ctx, func(s *session) error {
		return s.endClaim(ctx, o, c, "SET node = NULL, incarnation = NULL WHERE NOT done")
	})
	if err != nil {
		return fmt.Errorf("release chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	return nil
}

// ReopenChunk implements [store.Claims].
func (db *DB) ReopenChunk(ctx context.Context, c store.Chunk) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(ctx, `UPDATE chunks SET done = 0, node = NULL, incarnation = NULL, completed = 0,
				failed = 0, usage = CAST('{}' AS BLOB), counted = 0
			WHERE batch = ? AND idx = ? AND epoch = ? AND done
				AND EXISTS (SELECT 1 FROM batches WHERE id = batch AND ended = 0)`, c.Batch, c.Index, c.Epoch)
	})
	if err != nil {
		return fmt.Errorf("reopen chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	return nil
}

// endClaim ends a claim if it is the newest of its chunk, also after the end of its owner's lease.
func (s *session) endClaim(
	ctx context.Context, o store.Owner, c store.Chunk, change string, values ...any,
) error {
	return fencedUnlessOne(s.affect(ctx, "UPDATE chunks "+change+`
		AND batch = ? AND idx = ? AND epoch = ?
		AND node = ? AND incarnation = ?
		AND EXISTS (SELECT 1 FROM owners AS o WHERE o.node = ? AND o.incarnation = ?)`,
		append(values, c.Batch, c.Index, c.Epoch, o.Node, o.Incarnation, o.Node, o.Incarnation)...))
}

// Chunks implements [store.Claims].
func (db *DB) Chunks(ctx context.Context, batch string) (chunks []store.Chunk, err error) {
	err = db.read(ctx, func(s *session) error {
		chunks, err = s.chunks(
			ctx, "SELECT "+tables.ChunkColumns+" FROM chunks WHERE batch = ? ORDER BY idx", batch)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list chunks of batch %s: %w", batch, err)
	}
	return chunks, nil
}

// CountChunks implements [store.Claims].
func (db *DB) CountChunks(
	ctx context.Context, o store.Owner, batch string, held []int,
) (n store.ChunkCounts, err error) {
	err = db.read(ctx, func(s *session) error {
		args, err := db.heldForArgs(o, held)
		if err != nil {
			return err
		}
		return s.row(ctx, `SELECT
				count(*) FILTER (WHERE NOT done AND NOT held),
				count(*) FILTER (WHERE NOT done AND held), count(*) FILTER (WHERE done)
			FROM (SELECT c.done AS done, (`+heldFor+`) AS held FROM chunks AS c WHERE c.batch = ?)`,
			append(args, batch), &n.Free, &n.Claimed, &n.Done)
	})
	if err != nil {
		return store.ChunkCounts{}, fmt.Errorf("count chunks of batch %s: %w", batch, err)
	}
	return n, nil
}

// LinesLeft implements [store.Claims].
func (db *DB) LinesLeft(ctx context.Context) (map[string]map[string]int, error) {
	left := tables.LinesLeft{}
	err := db.read(ctx, func(s *session) error {
		return s.rows(ctx, `SELECT c.batch, c.model, sum(CASE WHEN c.done THEN 0 ELSE c.count END)
			FROM batches AS b JOIN chunks AS c ON c.batch = b.id
			WHERE b.ended = 0 GROUP BY c.batch, c.model`, nil, left.Scan)
	})
	if err != nil {
		return nil, fmt.Errorf("count the lines left of all batches: %w", err)
	}
	return left, nil
}

func (s *session) chunks(
	ctx context.Context, query string, args ...any,
) (chunks []store.Chunk, err error) {
	err = s.rows(ctx, query, args, tables.Collect(&chunks, tables.ScanChunk))
	return chunks, err
}

// fencedUnlessOne returns ErrFenced unless a compare-and-set has changed one row.
func fencedUnlessOne(changed int64, err error) error {
	if err == nil && changed != 1 {
		return store.ErrFenced
	}
	return err
}
