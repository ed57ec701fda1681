package sqlite

import (
	"context"
	"fmt"
	"strconv"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Every change of a batch takes the next revision, in the transaction that writes it. One session
// writes at a time, and so does one process, so revisions are committed in their order and a cursor
// is a revision.

func (s *session) nextRevision(ctx context.Context) (revision int64, err error) {
	err = s.row(ctx, "UPDATE revisions SET newest = newest + 1 RETURNING newest", nil, &revision)
	return revision, err
}

func cursorOf(revision int64) store.Cursor {
	return store.Cursor(strconv.FormatInt(revision, 10))
}

func revisionOf(c store.Cursor) (int64, error) {
	revision, err := strconv.ParseInt(string(c), 10, 64)
	if err != nil {
		return 0, store.ErrBadCursor
	}
	return revision, nil
}

// ChangedBatches implements [store.Changes].
func (db *DB) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) (ids []string, next store.Cursor, err error) {
	var revision int64
	err = db.snapshot(ctx, func(s *session) error {
		if after == "" {
			ids, revision, err = s.liveBatches(ctx)
			return err
		}
		if revision, err = revisionOf(after); err != nil {
			return err
		}
		ids, revision, err = s.changedBatches(ctx, revision, limit)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list batches changed after %q: %w", after, err)
	}
	return ids, cursorOf(revision), nil
}

// liveBatches returns all batches that are not terminal, and the newest revision.
func (s *session) liveBatches(ctx context.Context) (ids []string, newest int64, err error) {
	if err := s.row(ctx, "SELECT newest FROM revisions", nil, &newest); err != nil {
		return nil, 0, err
	}
	err = s.rows(ctx, "SELECT id FROM batches WHERE ended = 0 ORDER BY revision", nil,
		tables.Collect(&ids, tables.ScanScalar[string]))
	return ids, newest, err
}

func (s *session) changedBatches(
	ctx context.Context, revision int64, limit int,
) (ids []string, next int64, err error) {
	next = revision
	err = s.rows(
		ctx, "SELECT id, revision FROM batches WHERE revision > ? ORDER BY revision LIMIT ?",
		[]any{revision, limit},
		func(rows tables.Row) error {
			var id string
			err := rows.Scan(&id, &next)
			ids = append(ids, id)
			return err
		})
	return ids, next, err
}
