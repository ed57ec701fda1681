package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// batchRow holds the columns of a batch that an update compares or writes.
type batchRow struct {
	seq, version        int64
	state               store.State
	created, due, ended int64
}

// CreateBatch implements [store.Batches].
func (db *DB) CreateBatch(ctx context.Context, b store.Batch, files ...store.File) error {
	if err := db.createBatch(ctx, b, files); err != nil {
		return fmt.Errorf("create batch %s: %w", b.ID, err)
	}
	return nil
}

func (db *DB) createBatch(ctx context.Context, b store.Batch, files []store.File) error {
	b.Version = 1
	row, doc, err := db.encodeBatch(&b)
	if err != nil {
		return err
	}
	var parameters []byte
	if b.Parameters != nil {
		if parameters, err = tables.Encode(b.Parameters); err != nil {
			return err
		}
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
		if err := s.createBatch(ctx, b, row, doc, parameters); err != nil || row.ended != 0 {
			return err
		}
		return s.addInputReferences(ctx, b, tables.Micros(db.expiry()))
	})
}

func (s *session) createBatch(
	ctx context.Context, b store.Batch, row batchRow, doc, parameters []byte,
) error {
	return s.insertBatch(ctx, b, row, nil, doc, parameters)
}

// insertBatch is createBatch with a number; nil: the next one.
func (s *session) insertBatch(
	ctx context.Context, b store.Batch, row batchRow, seq any, doc, parameters []byte,
) error {
	revision, err := s.nextRevision(ctx)
	if err != nil {
		return err
	}
	err = s.row(ctx, `INSERT INTO batches
		(seq, id, tenant, version, revision, state, created, due, ended, doc)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq`,
		[]any{seq, b.ID, b.Tenant, row.version, revision, row.state, row.created, row.due,
			row.ended, doc}, &row.seq)
	if isDuplicate(err) {
		return store.ErrExists
	}
	if err != nil {
		return err
	}
	if parameters != nil {
		if err := s.exec(ctx, "INSERT INTO batch_parameters (batch, doc) VALUES (?, ?)", row.seq,
			parameters); err != nil {
			return err
		}
	}
	return s.addTags(ctx, row, tables.BatchTags(b))
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
	read := b.Version
	b.Version++
	row, doc, err := db.encodeBatch(&b)
	if err == nil {
		err = db.write(ctx, func(s *session) error { return s.updateBatch(ctx, b, read, row, doc) })
	}
	if err != nil {
		return store.Batch{}, fmt.Errorf("update batch %s: %w", b.ID, err)
	}
	return b, nil
}

// updateBatch writes b if its stored version is read.
func (s *session) updateBatch(
	ctx context.Context, b store.Batch, read int64, row batchRow, doc []byte,
) error {
	var was batchRow
	err := s.row(ctx, `SELECT seq, version, state, created, due, ended FROM batches
		WHERE id = ? AND tenant = ?`, []any{b.ID, b.Tenant},
		&was.seq, &was.version, &was.state, &was.created, &was.due, &was.ended)
	if err != nil {
		return err
	}
	if was.version != read {
		return fmt.Errorf("it is at version %d, not %d: %w", was.version, read, store.ErrConflict)
	}
	if was.ended != 0 {
		return fmt.Errorf("it is %s: %w", was.state, store.ErrConflict)
	}
	revision, err := s.nextRevision(ctx)
	if err != nil {
		return err
	}
	row.seq = was.seq
	err = s.exec(ctx, `UPDATE batches SET version = ?, revision = ?, state = ?, created = ?, due = ?,
		ended = ?, doc = ? WHERE seq = ?`,
		row.version, revision, row.state, row.created, row.due, row.ended, doc, row.seq)
	if err != nil {
		return err
	}
	if row.ended != 0 {
		if err := s.exec(ctx, "DELETE FROM batch_blobs WHERE batch = ?", b.ID); err != nil {
			return err
		}
	}
	return s.updateTags(ctx, was, row, tables.BatchTags(b))
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
	read := b.Version
	b.Version++
	row, doc, err := db.encodeBatch(&b)
	if err != nil {
		return b, err
	}
	rows := make([]tables.File, len(files))
	for i, f := range files {
		if rows[i], err = tables.EncodeFile(f); err != nil {
			return b, err
		}
	}
	return b, db.write(ctx, func(s *session) error {
		if err := s.holdsLock(ctx, o, lock, epoch); err != nil {
			return err
		}
		if err := s.updateBatch(ctx, b, read, row, doc); err != nil {
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
			[]any{tables.Micros(endedBefore), limit}, func(rows *sql.Rows) error {
				var b store.Batch
				err := rows.Scan(&b.ID, &b.Tenant)
				batches = append(batches, b)
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("list batches that ended before %s: %w",
			endedBefore.Format(time.RFC3339), err)
	}
	return batches, nil
}

// encodeBatch truncates b's times and returns its columns and document.
func (db *DB) encodeBatch(b *store.Batch) (batchRow, []byte, error) {
	tables.Truncate(&b.CreatedAt, &b.InProgressAt, &b.FinalizingAt, &b.CompletedAt, &b.FailedAt,
		&b.ExpiredAt, &b.CancellingAt, &b.CancelledAt, &b.Deadline, &b.StartBy)
	row := batchRow{
		version: b.Version,
		state:   b.State,
		created: tables.Micros(b.CreatedAt),
		due:     tables.MicrosOrNever(b.Deadline),
		ended:   db.ended(b),
	}
	doc, err := tables.Encode(b)
	return row, doc, err
}

// ended returns the time at which b became terminal; 0: it is not.
func (db *DB) ended(b *store.Batch) int64 {
	if !b.State.Terminal() {
		return 0
	}
	at := b.EndedAt()
	if at.IsZero() {
		at = db.now()
	}
	return max(tables.Micros(at), 1) // 0 means that it is not terminal
}

func (s *session) addTags(ctx context.Context, row batchRow, tags []int64) error {
	for _, tag := range tags {
		err := s.exec(
			ctx, "INSERT INTO batch_tags (seq, tag, state, created, due) VALUES (?, ?, ?, ?, ?)",
			row.seq, tag, row.state, row.created, row.due)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) updateTags(ctx context.Context, was, is batchRow, tags []int64) error {
	var stored []int64
	err := s.rows(ctx, "SELECT tag FROM batch_tags WHERE seq = ? ORDER BY tag", []any{is.seq},
		func(rows *sql.Rows) error {
			var tag int64
			err := rows.Scan(&tag)
			stored = append(stored, tag)
			return err
		})
	if err != nil {
		return err
	}
	if !slices.Equal(stored, tags) {
		if err := s.exec(ctx, "DELETE FROM batch_tags WHERE seq = ?", is.seq); err != nil {
			return err
		}
		return s.addTags(ctx, is, tags)
	}
	if was.state == is.state && was.created == is.created && was.due == is.due {
		return nil
	}
	return s.exec(ctx, "UPDATE batch_tags SET state = ?, created = ?, due = ? WHERE seq = ?",
		is.state, is.created, is.due, is.seq)
}
