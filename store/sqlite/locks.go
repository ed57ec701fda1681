package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// Lock implements [store.Claims]. An owner that asks again for what it has gets the epoch it has.
func (db *DB) Lock(
	ctx context.Context, o store.Owner, name string,
) (epoch int64, ok bool, err error) {
	err = db.write(ctx, func(s *session) error {
		living, err := db.leased(ctx, s, o)
		if err != nil || !living {
			return err
		}
		err = s.row(ctx, `INSERT INTO locks AS c (name, epoch, node, incarnation) VALUES (?, 1, ?, ?)
			ON CONFLICT (name) DO UPDATE SET
				epoch = epoch + (node IS NOT excluded.node OR incarnation IS NOT excluded.incarnation),
				node = excluded.node, incarnation = excluded.incarnation
			WHERE (node = excluded.node AND incarnation = excluded.incarnation) OR NOT `+holderLives+`
			RETURNING epoch`, []any{name, o.Node, o.Incarnation, micros(db.now())}, &epoch)
		if errors.Is(err, store.ErrNotFound) { // no row: another owner has it
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

// Unlock implements [store.Claims].
func (db *DB) Unlock(ctx context.Context, o store.Owner, name string) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(
			ctx, "UPDATE locks SET node = NULL, incarnation = NULL WHERE name = ? AND node = ? AND incarnation = ?",
			name, o.Node, o.Incarnation)
	})
	if err != nil {
		return fmt.Errorf("unlock %s: %w", name, err)
	}
	return nil
}

// holds returns ErrFenced unless the owner still has the lock at the epoch. A lapsed lease doesn't
// matter as long as nobody made use of it.
func (s *session) holds(ctx context.Context, o store.Owner, name string, epoch int64) error {
	var held bool
	err := s.row(ctx, `SELECT EXISTS (SELECT 1 FROM locks AS c WHERE name = ? AND epoch = ? AND node = ? AND incarnation = ?
		AND EXISTS (SELECT 1 FROM owners AS o WHERE o.node = c.node AND o.incarnation = c.incarnation))`,
		[]any{name, epoch, o.Node, o.Incarnation}, &held)
	if err == nil && !held {
		return fmt.Errorf("lock %s at epoch %d: %w", name, epoch, store.ErrFenced)
	}
	return err
}
