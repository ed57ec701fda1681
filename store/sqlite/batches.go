package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// CreateBatch implements [store.Batches].
func (db *DB) CreateBatch(ctx context.Context, b store.Batch, files ...store.File) error {
	if err := db.createBatch(ctx, b, files); err != nil {
		return fmt.Errorf("create batch %s: %w", b.ID, err)
	}
	return nil
}

func (db *DB) createBatch(ctx context.Context, b store.Batch, files []store.File) error {
	b.Version = 0
	row, err := tables.EncodeBatch(b, db.now())
	if err != nil {
		return err
	}
	made := make([]tables.File, len(files))
	for i, f := range files {
		if made[i], err = tables.EncodeFile(f); err != nil {
			return err
		}
	}
	return db.add(ctx, func(s *session) error {
		for _, f := range made {
			if err := s.createFile(ctx, f); err != nil {
				return fmt.Errorf("create file %s: %w", f.ID, err)
			}
		}
		if err := s.createBatch(ctx, row, nil); err != nil || row.Ended != 0 {
			return err
		}
		return s.addInputReferences(ctx, b, tables.Micros(db.expiry()))
	})
}

// createBatch adds the batch with a number; nil: the next one.
func (s *session) createBatch(ctx context.Context, b tables.Batch, seq any) error {
	revision, err := s.nextRevision(ctx)
	if err != nil {
		return err
	}
	var number int64
	err = s.row(ctx, `INSERT INTO batches
		(seq, id, tenant, version, revision, state, created, due, ended, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
		[]any{seq, b.ID, b.Tenant, b.Version, revision, b.State, tables.Micros(b.CreatedAt),
			tables.MicrosOrNever(b.Deadline), b.Ended, b.Doc}, &number)
	if isDuplicate(err) {
		return store.ErrExists
	}
	if err != nil {
		return err
	}
	if b.Parameters != nil {
		if err := s.exec(ctx, "INSERT INTO batch_parameters (batch, doc) VALUES (?, ?)", number,
			b.Parameters); err != nil {
			return err
		}
	}
	return s.addTags(ctx, b, number)
}

// Parameters implements [store.Batches].
func (db *DB) Parameters(ctx context.Context, id string) (p store.Parameters, err error) {
	err = db.read(ctx, func(s *session) error {
		var doc []byte
		err := s.row(ctx, `SELECT p.doc FROM batches AS b
			LEFT JOIN batch_parameters AS p ON p.batch = b.seq WHERE b.id = ?`, []any{id}, &doc)
		if err == nil && doc != nil {
			p, err = tables.Decode[store.Parameters](doc)
		}
		return err
	})
	if err != nil {
		return store.Parameters{}, fmt.Errorf("load parameters of batch %s: %w", id, err)
	}
	return p, nil
}

// Batch implements [store.Batches].
func (db *DB) Batch(ctx context.Context, tenant, id string) (b store.Batch, err error) {
	query, args := "SELECT doc FROM batches WHERE id = ?", []any{id}
	if tenant != "" {
		query, args = query+" AND tenant = ?", append(args, tenant)
	}
	err = db.read(ctx, func(s *session) error {
		var doc []byte
		if err := s.row(ctx, query, args, &doc); err != nil {
			return err
		}
		b, err = tables.Decode[store.Batch](doc)
		return err
	})
	if err != nil {
		return store.Batch{}, fmt.Errorf("load batch %s: %w", id, err)
	}
	return b, nil
}

// UpdateBatch implements [store.Batches].
func (db *DB) UpdateBatch(ctx context.Context, b store.Batch) (store.Batch, error) {
	row, err := tables.EncodeBatch(b, db.now())
	if err == nil {
		err = db.write(ctx, func(s *session) error { return s.updateBatch(ctx, row) })
	}
	if err != nil {
		return store.Batch{}, fmt.Errorf("update batch %s: %w", b.ID, err)
	}
	return row.Batch, nil
}

// updateBatch writes b if its stored version is the one that it was read at.
func (s *session) updateBatch(ctx context.Context, b tables.Batch) error {
	var seq, version, created, due, ended int64
	var state store.State
	err := s.row(ctx, `SELECT seq, version, state, created, due, ended FROM batches
		WHERE id = ? AND tenant = ?`, []any{b.ID, b.Tenant},
		&seq, &version, &state, &created, &due, &ended)
	if err != nil {
		return err
	}
	if version != b.Read {
		return fmt.Errorf("it is at version %d, not %d: %w", version, b.Read, store.ErrConflict)
	}
	if ended != 0 {
		return fmt.Errorf("it is %s: %w", state, store.ErrConflict)
	}
	revision, err := s.nextRevision(ctx)
	if err != nil {
		return err
	}
	createdNow, dueNow := tables.Micros(b.CreatedAt), tables.MicrosOrNever(b.Deadline)
	err = s.exec(ctx, `UPDATE batches SET version = ?, revision = ?, state = ?, created = ?, due = ?,
		ended = ?, doc = ? WHERE seq = ?`,
		b.Version, revision, b.State, createdNow, dueNow, b.Ended, b.Doc, seq)
	if err != nil {
		return err
	}
	if b.Ended != 0 {
		if err := s.exec(ctx, "DELETE FROM batch_blobs WHERE batch = ?", b.ID); err != nil {
			return err
		}
	}
	return s.updateTags(ctx, b, seq, state != b.State || created != createdNow || due != dueNow)
}

// FinishBatch implements [store.Batches].
func (db *DB) FinishBatch(
	ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch, files []store.File,
) (store.Batch, error) {
	finished, err := db.finishBatch(ctx, o, lock, epoch, b, files)
	if err != nil {
		return store.Batch{}, fmt.Errorf("finish batch %s: %w", b.ID, err)
	}
	return finished, nil
}

func (db *DB) finishBatch(
	ctx context.Context, o store.Owner, lock string, epoch int64, b store.Batch, files []store.File,
) (store.Batch, error) {
	if !b.State.Terminal() {
		return b, fmt.Errorf("%s is not a terminal state", b.State)
	}
	row, err := tables.EncodeBatch(b, db.now())
	if err != nil {
		return b, err
	}
	rows := make([]tables.File, len(files))
	for i, f := range files {
		if rows[i], err = tables.EncodeFile(f); err != nil {
			return b, err
		}
	}
	return row.Batch, db.write(ctx, func(s *session) error {
		if err := s.holdsLock(ctx, o, lock, epoch); err != nil {
			return err
		}
		if err := s.updateBatch(ctx, row); err != nil {
			return err
		}
		for _, f := range rows {
			// Earlier releases created the rows of result files before their batch ended.
			if err := s.exec(ctx, "DELETE FROM files WHERE id = ? AND tenant = ?", f.ID,
				f.Tenant); err != nil {
				return err
			}
			if err := s.createFile(ctx, f); err != nil {
				return fmt.Errorf("create file %s: %w", f.ID, err)
			}
		}
		return nil
	})
}

// DeleteBatch implements [store.Batches]. Chunks, tags and progress are deleted by foreign key.
func (db *DB) DeleteBatch(ctx context.Context, tenant, id string) (b store.Batch, err error) {
	err = db.write(ctx, func(s *session) error {
		var doc []byte
		if err := s.row(ctx, "SELECT doc FROM batches WHERE id = ? AND tenant = ?",
			[]any{id, tenant}, &doc); err != nil {
			return err
		}
		if b, err = tables.Decode[store.Batch](doc); err != nil {
			return err
		}
		if !b.State.Terminal() {
			return fmt.Errorf("it is %s: %w", b.State, store.ErrConflict)
		}
		return s.exec(ctx, "DELETE FROM batches WHERE id = ?", id)
	})
	if err != nil {
		return store.Batch{}, fmt.Errorf("delete batch %s: %w", id, err)
	}
	return b, nil
}

// StaleBatches implements [store.BatchLists].
func (db *DB) StaleBatches(
	ctx context.Context, endedBefore time.Time, limit int,
) (batches []store.Batch, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.rows(ctx, `SELECT id, tenant FROM batches WHERE ended > 0 AND ended < ?
			ORDER BY ended LIMIT ?`,
			[]any{tables.Micros(endedBefore), limit},
			tables.Collect(&batches, tables.ScanBatchName))
	})
	if err != nil {
		return nil, fmt.Errorf("list batches that ended before %s: %w",
			endedBefore.Format(time.RFC3339), err)
	}
	return batches, nil
}

func (s *session) addTags(ctx context.Context, b tables.Batch, seq int64) error {
	for _, tag := range b.Tags {
		err := s.exec(
			ctx, "INSERT INTO batch_tags (seq, tag, state, created, due) VALUES (?, ?, ?, ?, ?)",
			seq, tag, b.State, tables.Micros(b.CreatedAt), tables.MicrosOrNever(b.Deadline))
		if err != nil {
			return err
		}
	}
	return nil
}

// updateTags replaces tags that differ. changed: the columns that each tag repeats differ.
func (s *session) updateTags(ctx context.Context, b tables.Batch, seq int64, changed bool) error {
	var stored []int64
	err := s.rows(ctx, "SELECT tag FROM batch_tags WHERE seq = ? ORDER BY tag", []any{seq},
		tables.Collect(&stored, tables.ScanScalar[int64]))
	if err != nil {
		return err
	}
	if !slices.Equal(stored, b.Tags) {
		if err := s.exec(ctx, "DELETE FROM batch_tags WHERE seq = ?", seq); err != nil {
			return err
		}
		return s.addTags(ctx, b, seq)
	}
	if !changed {
		return nil
	}
	return s.exec(ctx, "UPDATE batch_tags SET state = ?, created = ?, due = ? WHERE seq = ?",
		b.State, tables.Micros(b.CreatedAt), tables.MicrosOrNever(b.Deadline), seq)
}
