package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Register implements [store.Owners].
func (db *DB) Register(ctx context.Context, node string, ttl time.Duration) (store.Owner, error) {
	o := store.Owner{Node: node}
	err := db.write(ctx, func(s *session) error {
		return s.row(ctx, `INSERT INTO owners (node, incarnation, lease_until) VALUES (?, 1, ?)
			ON CONFLICT (node)
				DO UPDATE SET incarnation = incarnation + 1, lease_until = excluded.lease_until, team = ''
			RETURNING incarnation`, []any{node, tables.Micros(db.now().Add(ttl))}, &o.Incarnation)
	})
	if err != nil {
		return store.Owner{}, fmt.Errorf("register node %s: %w", node, err)
	}
	return o, nil
}

// Renew implements [store.Owners].
func (db *DB) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	err := db.write(ctx, func(s *session) error {
		return fencedUnlessOne(
			s.affect(ctx, "UPDATE owners SET lease_until = ? WHERE node = ? AND incarnation = ?",
				tables.Micros(db.now().Add(ttl)), o.Node, o.Incarnation))
	})
	if err != nil {
		return fmt.Errorf("renew lease of node %s: %w", o.Node, err)
	}
	return nil
}

// Unregister implements [store.Owners]. It gives the node a next incarnation, which no process has.
func (db *DB) Unregister(ctx context.Context, o store.Owner) error {
	err := db.write(ctx, func(s *session) error {
		// Newest reads the time.
		return s.exec(ctx, `UPDATE owners SET incarnation = incarnation + 1, lease_until = ?
			WHERE node = ? AND incarnation = ?`, tables.Micros(db.now()), o.Node, o.Incarnation)
	})
	if err != nil {
		return fmt.Errorf("unregister node %s: %w", o.Node, err)
	}
	return nil
}

// Join implements [store.Owners].
func (db *DB) Join(ctx context.Context, o store.Owner, team string) (members int, err error) {
	err = db.write(ctx, func(s *session) error {
		err := fencedUnlessOne(
			s.affect(ctx, "UPDATE owners SET team = ? WHERE node = ? AND incarnation = ?", team,
				o.Node, o.Incarnation))
		if err != nil {
			return err
		}
		return s.row(ctx, "SELECT count(*) FROM owners WHERE team = ? AND lease_until > ?",
			[]any{team, tables.Micros(db.now())}, &members)
	})
	if err != nil {
		return 0, fmt.Errorf("add node %s to a team: %w", o.Node, err)
	}
	return members, nil
}

// LiveOwners implements [store.Owners]. An owner of this process whose posts a full disk refused is
// among them: its lease may end, as the disk takes no renewal either, and users ask why nothing
// moves.
func (db *DB) LiveOwners(
	ctx context.Context, owners []store.Owner,
) (live []store.Owner, err error) {
	now := tables.Micros(db.now())
	err = db.read(ctx, func(s *session) error {
		return s.rows(ctx, "SELECT node, incarnation FROM owners WHERE lease_until > ?", []any{now},
			tables.Collect(&live, tables.ScanOwner))
	})
	if err != nil {
		return nil, fmt.Errorf("list live owners: %w", err)
	}
	return db.unposted.LiveOf(owners, live), nil
}

// leased reports whether the owner's lease lasts. ErrFenced: it is superseded.
func (db *DB) leased(ctx context.Context, s *session, o store.Owner) (bool, error) {
	var until int64
	found := false
	err := s.rows(ctx, "SELECT lease_until FROM owners WHERE node = ? AND incarnation = ?",
		[]any{o.Node, o.Incarnation},
		func(rows tables.Row) error {
			found = true
			return rows.Scan(&until)
		})
	if err == nil && !found {
		err = store.ErrFenced
	}
	return until > tables.Micros(db.now()), err
}

// requireLease returns ErrFenced unless the owner's lease lasts.
func (db *DB) requireLease(ctx context.Context, s *session, o store.Owner) error {
	leased, err := db.leased(ctx, s, o)
	if err == nil && !leased {
		err = store.ErrFenced
	}
	return err
}
