package postgres

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Lock implements [store.Locks].
func (db *DB) Lock(
	ctx context.Context, o store.Owner, name string,
) (epoch int64, ok bool, err error) {
	all := db.ownerArguments(o)
	all["name"] = text(name)
	known := false
	err = db.write(ctx, func(s *steps) {
		known, epoch = false, 0
		s.lock(lockName, name)
		s.rows(`WITH me AS MATERIALIZED (`+leaseSeen+`),
			got AS (INSERT INTO locks AS c (name, epoch, node, incarnation)
				SELECT @name::text, 1, @node::text, @incarnation::bigint FROM me WHERE leased
				ON CONFLICT (name) DO UPDATE SET
					epoch = c.epoch + CASE WHEN c.node = excluded.node
						AND c.incarnation = excluded.incarnation THEN 0 ELSE 1 END,
					node = excluded.node, incarnation = excluded.incarnation
				WHERE c.node = excluded.node AND c.incarnation = excluded.incarnation
					OR NOT `+holderLeased+` RETURNING epoch)
			SELECT coalesce(got.epoch, 0) FROM me LEFT JOIN got ON true`, all,
			func(row tables.Row) error {
				known = true
				return row.Scan(&epoch)
			})
	})
	if err == nil && !known {
		err = store.ErrFenced
	}
	if err != nil {
		return 0, false, fmt.Errorf("lock %s: %w", name, err)
	}
	return epoch, epoch > 0, nil
}

// Unlock implements [store.Locks].
func (db *DB) Unlock(ctx context.Context, o store.Owner, name string) error {
	err := db.write(ctx, func(s *steps) {
		s.do(`UPDATE locks SET node = NULL, incarnation = NULL
			WHERE name = @name AND node = @node AND incarnation = @incarnation`,
			args{"name": text(name), "node": text(o.Node), "incarnation": o.Incarnation})
	})
	if err != nil {
		return fmt.Errorf("unlock %s: %w", name, err)
	}
	return nil
}

// holdsLock ends the transaction with ErrFenced unless the owner holds the lock at the epoch. Its
// lease may have ended. No other owner gets the lock before the transaction ends.
func (s *steps) holdsLock(o store.Owner, name string, epoch int64) {
	all := args{"name": text(name), "node": text(o.Node), "incarnation": o.Incarnation,
		"epoch": epoch}
	const held = `name = @name AND epoch = @epoch AND node = @node AND incarnation = @incarnation`
	s.do("SELECT 1 FROM locks WHERE "+held+" FOR SHARE", all)
	s.require(refusedFenced, fmt.Sprintf("lock %s at epoch %d", text(name), epoch),
		"EXISTS (SELECT 1 FROM locks AS c WHERE "+held+` AND EXISTS (SELECT 1 FROM owners AS o
			WHERE o.node = c.node AND o.incarnation = c.incarnation))`, all)
}
