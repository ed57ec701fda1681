package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Lock implements [store.Locks].
func (db *DB) Lock(
	ctx context.Context, o store.Owner, name string,
) (epoch int64, ok bool, err error) {
	err = db.write(ctx, func(s *session) error {
		leased, err := db.leased(ctx, s, o)
		if err != nil || !leased {
			return err
		}
		err = s.row(ctx, `INSERT INTO locks AS c (name, epoch, node, incarnation) VALUES (?, 1, ?, ?)
			ON CONFLICT (name) DO UPDATE SET
				epoch = epoch + (node IS NOT excluded.node OR incarnation IS NOT excluded.incarnation),
				node = excluded.node, incarnation = excluded.incarnation
			WHERE (node = excluded.node AND incarnation = excluded.incarnation) OR NOT `+holderLeased+`
			RETURNING epoch`, []any{name, o.Node, o.Incarnation, tables.Micros(db.now())}, &epoch)
		if errors.Is(err, store.ErrNotFound) { // no row: another owner holds it
			return nil
		}
		ok = err == nil
		return err
	})
	if err != nil {
		return 0, false, fmt.Errorf("lock %s: %w", name, err)
	}
	return epoch, ok, nil
}

// Unlock implements [store.Locks].
func (db *DB) Unlock(ctx context.Context, o store.Owner, name string) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(ctx, `UPDATE locks SET node = NULL, incarnation = NULL
			WHERE name = ? AND node = ? AND incarnation = ?`, name, o.Node, o.Incarnation)
	})
	if err != nil {
		return fmt.Errorf("unlock %s: %w", name, err)
	}
	return nil
}

// holdsLock returns ErrFenced unless the owner holds the lock at the epoch. Its lease may have
// ended.
func (s *session) holdsLock(ctx context.Context, o store.Owner, name string, epoch int64) error {
	var held bool
	err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM locks AS c
		WHERE name = ? AND epoch = ? AND node = ? AND incarnation = ?
		AND EXISTS (SELECT 1 FROM owners AS o WHERE o.node = c.node AND o.incarnation = c.incarnation))`,
		[]any{name, epoch, o.Node, o.Incarnation}, &held)
	if err == nil && !held {
		return fmt.Errorf("lock %s at epoch %d: %w", name, epoch, store.ErrFenced)
	}
	return err
}
