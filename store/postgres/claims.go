package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// holderLeased is the condition that the holder of c has a lease that lasts. Rows are not changed
// when a claim ends with its owner: registering, unregistering and the end of a lease free
// everything at once.
const holderLeased = `EXISTS (SELECT 1 FROM owners AS o
	WHERE o.node = c.node AND o.incarnation = c.incarnation AND o.lease_until > ` + serverNow + `)`

// heldFor is the condition that chunk c is not free for the owner @node, @incarnation: its holder
// has a lease, and is not that owner with a chunk that it does not list in @held.
const heldFor = `(` + holderLeased + ` AND NOT (c.node = @node AND c.incarnation = @incarnation
	AND c.idx <> ALL (@held::bigint[])))`

func (db *DB) claimArguments(o store.Owner, batch string, held []int) args {
	all := db.ownerArguments(o)
	all["batch"], all["held"] = text(batch), integers(held)
	return all
}

// AddChunks implements [store.Claims].
func (db *DB) AddChunks(ctx context.Context, batch string, chunks []store.Chunk) error {
	var indexes, firsts, counts []int64
	var models []string
	for _, c := range chunks {
		indexes, models = append(indexes, int64(c.Index)), append(models, text(c.Model))
		firsts, counts = append(firsts, int64(c.First)), append(counts, int64(c.Count))
	}
	if len(chunks) == 0 {
		return nil
	}
	err := db.write(ctx, func(s *steps) {
		s.lock(lockClaims, batch)
		s.do(`INSERT INTO chunks (batch, idx, model, first, count)
			SELECT @batch::text, c.* FROM unnest(@indexes::bigint[], @models::text[],
				@firsts::bigint[], @counts::bigint[]) AS c
			WHERE NOT EXISTS (SELECT 1 FROM chunks WHERE batch = @batch)`,
			args{"batch": text(batch), "indexes": indexes, "models": models, "firsts": firsts,
				"counts": counts})
	})
	if err != nil {
		return fmt.Errorf("add chunks of batch %s: %w", batch, err)
	}
	return nil
}

// claimQuery claims the lowest free chunks, and returns whether the lease of the owner lasts with
// each of them, or alone if there is none. No row: the owner is superseded.
//
// Claims of one batch exclude each other by an advisory lock, so that this statement sees the
// claims and the owners as of now. A chunk that is finished, released or reopened meanwhile is
// locked, and its condition is evaluated again.
const claimQuery = `WITH me AS MATERIALIZED (` + leaseSeen + `),
	free AS (SELECT c.batch, c.idx FROM chunks AS c WHERE c.batch = @batch AND c.model = @model
		AND NOT c.done AND NOT ` + heldFor + ` AND (SELECT leased FROM me)
		ORDER BY c.idx LIMIT @limit FOR UPDATE),
	claimed AS (UPDATE chunks AS c SET node = @node, incarnation = @incarnation,
		epoch = c.epoch + 1 FROM free WHERE c.batch = free.batch AND c.idx = free.idx
		RETURNING c.idx, c.first, c.count, c.epoch)
	SELECT claimed.* FROM me LEFT JOIN claimed ON true ORDER BY claimed.idx`

// ClaimChunks implements [store.Claims].
func (db *DB) ClaimChunks(
	ctx context.Context, o store.Owner, batch, model string, n int, held []int,
) (claimed []store.Chunk, err error) {
	all := db.claimArguments(o, batch, held)
	all["model"], all["limit"] = text(model), int64(max(n, 0))
	known := false
	err = db.write(ctx, func(s *steps) {
		claimed, known = nil, false
		s.lock(lockClaims, batch)
		s.rows(claimQuery, all, func(row tables.Row) error {
			known = true
			var index, first, count, epoch *int
			err := row.Scan(&index, &first, &count, &epoch)
			if err == nil && index != nil {
				claimed = append(claimed, store.Chunk{
					ChunkID: store.ChunkID{Batch: batch, Index: *index}, Model: model,
					First: *first, Count: *count, Epoch: int64(*epoch)})
			}
			return err
		})
	})
	if err == nil && !known {
		err = store.ErrFenced
	}
	if err != nil {
		return nil, fmt.Errorf("claim chunks of batch %s: %w", batch, err)
	}
	return claimed, nil
}

// thisHour is the beginning of the hour of serverNow.
const thisHour = serverNow + " / 3600000000 * 3600000000"

// FinishChunks implements [store.Claims].
func (db *DB) FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error {
	ends := make([]args, len(chunks))
	for i, c := range byPlace(chunks) {
		usage, err := tables.EncodeTally(c.Tally)
		if err != nil {
			return fmt.Errorf("finish chunk %d of batch %s: %w", c.Index, c.Batch, err)
		}
		ends[i] = claimEnd(o, c)
		ends[i]["completed"], ends[i]["failed"] = int64(c.Tally.Completed), int64(c.Tally.Failed)
		ends[i]["usage"], ends[i]["now"] = usage, db.clock()
	}
	err := db.write(ctx, func(s *steps) {
		for _, end := range ends {
			s.change(refusedFenced, "the claim is not the newest", `UPDATE chunks SET done = true,
				completed = @completed, failed = @failed, usage = @usage,
				counted = CASE WHEN done THEN counted ELSE `+thisHour+` END
				WHERE `+isNewest, end)
		}
	})
	if err != nil {
		return fmt.Errorf("finish %d chunks: %w", len(chunks), err)
	}
	return nil
}

// byPlace sorts chunks, so that transactions lock them in the same order.
func byPlace(chunks []store.Chunk) []store.Chunk {
	return slices.SortedFunc(slices.Values(chunks), func(a, b store.Chunk) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch), a.Index-b.Index)
	})
}

// ReleaseChunk implements [store.Claims].
func (db *DB) ReleaseChunk(ctx context.Context, o store.Owner, c store.Chunk) error {
	end := claimEnd(o, c)
	err := db.write(ctx, func(s *steps) {
		s.change(refusedFenced, "the claim is not the newest", `UPDATE chunks
			SET node = NULL, incarnation = NULL WHERE NOT done AND `+isNewest, end)
	})
	if err != nil {
		return fmt.Errorf("release chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	return nil
}

// isNewest is the condition that a claim is the newest of its chunk. It holds also after the end of
// its owner's lease. Its arguments are those of claimEnd.
const isNewest = `batch = @batch AND idx = @idx AND epoch = @epoch
	AND node = @node AND incarnation = @incarnation AND EXISTS
		(SELECT 1 FROM owners AS o WHERE o.node = @node AND o.incarnation = @incarnation)`

func claimEnd(o store.Owner, c store.Chunk) args {
	return args{"batch": text(c.Batch), "idx": int64(c.Index), "epoch": c.Epoch,
		"node": text(o.Node), "incarnation": o.Incarnation}
}

// ReopenChunk implements [store.Claims].
func (db *DB) ReopenChunk(ctx context.Context, c store.Chunk) error {
	err := db.write(ctx, func(s *steps) {
		// The lock of the row excludes the end of the batch.
		s.do("SELECT 1 FROM batches WHERE id = @batch FOR SHARE", args{"batch": text(c.Batch)})
		s.do(`UPDATE chunks SET done = false, node = NULL, incarnation = NULL, completed = 0,
				failed = 0, usage = '{}', counted = 0
			WHERE batch = @batch AND idx = @idx AND epoch = @epoch AND done
				AND EXISTS (SELECT 1 FROM batches WHERE id = @batch AND ended = 0)`,
			args{"batch": text(c.Batch), "idx": int64(c.Index), "epoch": c.Epoch})
	})
	if err != nil {
		return fmt.Errorf("reopen chunk %d of batch %s: %w", c.Index, c.Batch, err)
	}
	return nil
}

// Chunks implements [store.Claims].
func (db *DB) Chunks(ctx context.Context, batch string) (chunks []store.Chunk, err error) {
	err = db.read(ctx, func(s *steps) {
		chunks = nil
		s.rows("SELECT "+tables.ChunkColumns+" FROM chunks WHERE batch = @batch ORDER BY idx",
			args{"batch": text(batch)}, tables.Collect(&chunks, tables.ScanChunk))
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
	all := db.claimArguments(o, batch, held)
	err = db.read(ctx, func(s *steps) {
		s.row(`SELECT count(*) FILTER (WHERE NOT done AND NOT held),
				count(*) FILTER (WHERE NOT done AND held), count(*) FILTER (WHERE done)
			FROM (SELECT c.done, `+heldFor+` AS held FROM chunks AS c WHERE c.batch = @batch)
				AS chunks`, all, &n.Free, &n.Claimed, &n.Done)
	})
	if err != nil {
		return store.ChunkCounts{}, fmt.Errorf("count chunks of batch %s: %w", batch, err)
	}
	return n, nil
}

// LinesLeft implements [store.Claims].
func (db *DB) LinesLeft(ctx context.Context) (map[string]map[string]int, error) {
	var left tables.LinesLeft
	err := db.read(ctx, func(s *steps) {
		left = tables.LinesLeft{}
		// Batch by batch: most chunks are of batches that have ended.
		s.rows(`SELECT b.id, c.model, c.lines FROM batches AS b CROSS JOIN LATERAL
				(SELECT model, coalesce(sum(count) FILTER (WHERE NOT done), 0)::bigint AS lines
				FROM chunks WHERE batch = b.id GROUP BY model) AS c
			WHERE b.ended = 0`, nil, left.Scan)
	})
	if err != nil {
		return nil, fmt.Errorf("count the lines left of all batches: %w", err)
	}
	return left, nil
}

// deletedMeanwhile reports whether a transaction failed because a batch that its statement had
// found was deleted before its row was added. The next attempt does not find it.
func deletedMeanwhile(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == foreignKeyViolation
}
