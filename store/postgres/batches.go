package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// batchRow is a batch with its encoded columns.
type batchRow struct{ tables.Batch }

func (db *DB) encodeBatch(b store.Batch) (batchRow, error) {
	row, err := tables.EncodeBatch(b, db.localNow())
	return batchRow{row}, err
}

// arguments returns the arguments of statements that write the batch.
func (r batchRow) arguments() args {
	return args{"id": text(r.ID), "tenant": text(r.Tenant), "version": r.Version,
		"read": r.Read, "state": string(r.State), "created": tables.Micros(r.CreatedAt),
		"due": tables.MicrosOrNever(r.Deadline), "ended": r.Ended, "doc": r.Doc, "tags": r.Tags}
}

// CreateBatch implements [store.Batches].
func (db *DB) CreateBatch(ctx context.Context, b store.Batch, files ...store.File) error {
	b.Version = 0
	row, err := db.encodeBatch(b)
	var made fileRows
	if err == nil {
		made, err = encodeFiles(files...)
	}
	if err == nil {
		expiry := tables.Micros(db.expiry())
		err = db.write(ctx, func(s *steps) {
			made.create(s)
			s.createBatch(row)
			if row.Ended == 0 {
				s.addInputReferences(b, expiry)
			}
		})
	}
	if err != nil {
		return fmt.Errorf("create batch %s: %w", b.ID, err)
	}
	db.changed()
	return nil
}

func (s *steps) createBatch(r batchRow) {
	all := r.arguments()
	s.do(`INSERT INTO batches
		(id, tenant, version, state, created, due, ended, timeline, changed, doc)
		VALUES (@id, @tenant, @version, @state, @created, @due, @ended, tidefill_timeline(),
			pg_current_xact_id(), @doc)`, all)
	s.describeBatch(r, all)
}

// describeBatch adds the parameters and the tags of a batch that was inserted.
func (s *steps) describeBatch(r batchRow, all args) {
	if r.Parameters != nil {
		all["parameters"] = r.Parameters
		s.do(`INSERT INTO batch_parameters (batch, doc)
			SELECT seq, @parameters FROM batches WHERE id = @id`, all)
	}
	if len(r.Tags) > 0 {
		s.do(`INSERT INTO batch_tags (seq, tag, state, created, due)
			SELECT b.seq, tag, b.state, b.created, b.due
			FROM batches AS b, unnest(@tags::bigint[]) AS tag WHERE b.id = @id`, all)
	}
}

// Parameters implements [store.Batches].
func (db *DB) Parameters(ctx context.Context, id string) (p store.Parameters, err error) {
	var found bool
	var doc []byte
	err = db.read(ctx, func(s *steps) {
		found, doc = false, nil
		s.row(`SELECT true, p.doc FROM batches AS b
			LEFT JOIN batch_parameters AS p ON p.batch = b.seq WHERE b.id = @id`,
			args{"id": text(id)}, &found, &doc)
	})
	switch {
	case err != nil:
	case !found:
		err = store.ErrNotFound
	case doc != nil:
		p, err = tables.Decode[store.Parameters](doc)
	}
	if err != nil {
		return store.Parameters{}, fmt.Errorf("load parameters of batch %s: %w", id, err)
	}
	return p, nil
}

// Batch implements [store.Batches].
func (db *DB) Batch(ctx context.Context, tenant, id string) (b store.Batch, err error) {
	var doc []byte
	err = db.read(ctx, func(s *steps) {
		doc = nil
		s.row(`SELECT doc FROM batches WHERE id = @id
			AND (@tenant::text = '' OR tenant = @tenant::text)`,
			args{"id": text(id), "tenant": text(tenant)}, &doc)
	})
	if err == nil {
		b, err = decodeBatch(doc)
	}
	if err != nil {
		return store.Batch{}, fmt.Errorf("load batch %s: %w", id, err)
	}
	return b, nil
}

// decodeBatch decodes a batch that was read. ErrNotFound: there was none.
func decodeBatch(doc []byte) (store.Batch, error) {
	if doc == nil {
		return store.Batch{}, store.ErrNotFound
	}
	return tables.Decode[store.Batch](doc)
}

// UpdateBatch implements [store.Batches].
func (db *DB) UpdateBatch(ctx context.Context, b store.Batch) (store.Batch, error) {
	row, err := db.encodeBatch(b)
	if err == nil {
		err = db.write(ctx, func(s *steps) { s.updateBatch(row) })
	}
	if err != nil {
		return store.Batch{}, fmt.Errorf("update batch %s: %w", b.ID, db.explain(ctx, row, err))
	}
	db.changed()
	return row.Batch.Batch, nil
}

// updateBatch writes the batch if its stored version is the one that was read, and not terminal.
func (s *steps) updateBatch(r batchRow) {
	all := r.arguments()
	s.change(refusedConflict, "its version differs", `UPDATE batches SET version = @version,
		state = @state, created = @created, due = @due, ended = @ended,
		timeline = tidefill_timeline(), changed = pg_current_xact_id(), doc = @doc
		WHERE id = @id AND tenant = @tenant AND version = @read AND ended = 0`, all)
	s.do(`DELETE FROM batch_tags WHERE seq = (SELECT seq FROM batches WHERE id = @id)
		AND tag <> ALL (@tags::bigint[])`, all)
	s.do(`INSERT INTO batch_tags AS t (seq, tag, state, created, due)
		SELECT b.seq, tag, b.state, b.created, b.due
		FROM batches AS b, unnest(@tags::bigint[]) AS tag WHERE b.id = @id
		ON CONFLICT (seq, tag) DO UPDATE
			SET state = excluded.state, created = excluded.created, due = excluded.due
			WHERE (t.state, t.created, t.due)
				<> (excluded.state, excluded.created, excluded.due)`, all)
	if r.Ended != 0 {
		s.do("DELETE FROM batch_blobs WHERE batch = @id", all)
	}
}

// explain says why a batch could not be updated: ErrNotFound if its tenant has none, and else
// ErrConflict with what the batch is now.
func (db *DB) explain(ctx context.Context, r batchRow, err error) error {
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	var version int64
	var state string
	if failed := db.read(ctx, func(s *steps) {
		version = 0
		s.row("SELECT version, state FROM batches WHERE id = @id AND tenant = @tenant",
			args{"id": text(r.ID), "tenant": text(r.Tenant)}, &version, &state)
	}); failed != nil {
		return err
	}
	switch {
	case version == 0:
		return store.ErrNotFound
	case version != r.Read:
		return fmt.Errorf("it is at version %d, not %d: %w", version, r.Read, store.ErrConflict)
	case store.State(state).Terminal():
		return fmt.Errorf("it is %s: %w", state, store.ErrConflict)
	}
	return err
}

// FinishBatch implements [store.Batches].
func (db *DB) FinishBatch(
	ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch, files []store.File,
) (store.Batch, error) {
	finished, err := db.finishBatch(ctx, o, lock, epoch, b, files)
	if err != nil {
		return store.Batch{}, fmt.Errorf("finish batch %s: %w", b.ID, err)
	}
	db.changed()
	return finished, nil
}

func (db *DB) finishBatch(
	ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch, files []store.File,
) (store.Batch, error) {
	if !b.State.Terminal() {
		return b, fmt.Errorf("%s is not a terminal state", b.State)
	}
	row, err := db.encodeBatch(b)
	if err != nil {
		return b, err
	}
	made, err := encodeFiles(files...)
	if err != nil {
		return b, err
	}
	err = db.write(ctx, func(s *steps) {
		s.holdsLock(o, lock, epoch)
		s.updateBatch(row)
		if len(files) > 0 {
			// A store that was copied from another may have rows of result files of batches that
			// have not ended.
			s.do("DELETE FROM files WHERE id = ANY (@ids::text[]) AND tenant = @tenant",
				args{"ids": made.ids, "tenant": text(b.Tenant)})
		}
		made.create(s)
	})
	return row.Batch.Batch, db.explain(ctx, row, err)
}

// DeleteBatch implements [store.Batches]. What belongs to the batch is deleted by foreign keys.
func (db *DB) DeleteBatch(ctx context.Context, tenant, id string) (b store.Batch, err error) {
	var doc []byte
	var state string
	all := args{"id": text(id), "tenant": text(tenant)}
	err = db.write(ctx, func(s *steps) {
		doc, state = nil, ""
		s.row(`DELETE FROM batches WHERE id = @id AND tenant = @tenant AND ended > 0
			RETURNING doc`, all, &doc)
		s.row("SELECT state FROM batches WHERE id = @id AND tenant = @tenant", all, &state)
	})
	if err == nil && state != "" {
		err = fmt.Errorf("it is %s: %w", state, store.ErrConflict)
	}
	if err == nil {
		b, err = decodeBatch(doc)
	}
	if err != nil {
		return store.Batch{}, fmt.Errorf("delete batch %s: %w", id, err)
	}
	return b, nil
}

// StaleBatches implements [store.BatchLists].
func (db *DB) StaleBatches(
	ctx context.Context, endedBefore time.Time, limit int,
) (batches []store.Batch, err error) {
	err = db.read(ctx, func(s *steps) {
		batches = nil
		s.rows(`SELECT id, tenant FROM batches WHERE ended > 0 AND ended < @before
			ORDER BY ended LIMIT @limit`,
			args{"before": tables.Micros(endedBefore), "limit": int64(limit)},
			tables.Collect(&batches, tables.ScanBatchName))
	})
	if err != nil {
		return nil, fmt.Errorf("list batches that ended before %s: %w",
			endedBefore.Format(time.RFC3339), err)
	}
	return batches, nil
}
