package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// leaseSeen is the query of the lease of the owner @node, @incarnation: true while it lasts, no row
// if the owner is superseded.
const leaseSeen = `SELECT lease_until > ` + serverNow + ` AS leased FROM owners
	WHERE node = @node AND incarnation = @incarnation`

// ownerArguments returns the arguments of statements about an owner.
func (db *DB) ownerArguments(o store.Owner) args {
	return args{"node": text(o.Node), "incarnation": o.Incarnation, "now": db.clock()}
}

// Register implements [store.Owners].
func (db *DB) Register(ctx context.Context, node string, ttl time.Duration) (store.Owner, error) {
	o := store.Owner{Node: node}
	all := args{"node": text(node), "now": db.clock(), "ttl": ttl.Microseconds()}
	err := db.write(ctx, func(s *steps) {
		s.row(`INSERT INTO owners AS o (node, incarnation, lease_until)
			VALUES (@node, 1, `+serverNow+` + @ttl::bigint)
			ON CONFLICT (node) DO UPDATE
				SET incarnation = o.incarnation + 1, lease_until = excluded.lease_until, team = ''
			RETURNING incarnation`, all, &o.Incarnation)
	})
	if err != nil {
		return store.Owner{}, fmt.Errorf("register node %s: %w", node, err)
	}
	return o, nil
}

// Renew implements [store.Owners].
func (db *DB) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	all := db.ownerArguments(o)
	all["ttl"] = ttl.Microseconds()
	var changed int64
	err := db.write(ctx, func(s *steps) {
		s.affect(&changed, `UPDATE owners SET lease_until = `+serverNow+` + @ttl::bigint
			WHERE node = @node AND incarnation = @incarnation`, all)
	})
	if err = fencedUnlessOne(changed, err); err != nil {
		return fmt.Errorf("renew lease of node %s: %w", o.Node, err)
	}
	return nil
}

// Unregister implements [store.Owners]. It gives the node a next incarnation, which no process has.
func (db *DB) Unregister(ctx context.Context, o store.Owner) error {
	all := db.ownerArguments(o)
	err := db.write(ctx, func(s *steps) {
		// Newest reads the time.
		s.do(`UPDATE owners SET incarnation = incarnation + 1, lease_until = `+serverNow+`
			WHERE node = @node AND incarnation = @incarnation`, all)
	})
	if err != nil {
		return fmt.Errorf("unregister node %s: %w", o.Node, err)
	}
	db.changed() // others can lead
	return nil
}

// Join implements [store.Owners]. It writes only if the team is another one.
func (db *DB) Join(ctx context.Context, o store.Owner, team string) (members int, err error) {
	all := db.ownerArguments(o)
	all["team"] = text(team)
	known := false
	err = db.write(ctx, func(s *steps) {
		s.do(`UPDATE owners SET team = @team
			WHERE node = @node AND incarnation = @incarnation AND team <> @team`, all)
		s.row(`SELECT count(*) FILTER (WHERE lease_until > `+serverNow+`),
				coalesce(bool_or(node = @node AND incarnation = @incarnation), false)
			FROM owners WHERE team = @team`, all, &members, &known)
	})
	if err == nil && !known {
		err = store.ErrFenced
	}
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
	if len(owners) == 0 {
		return nil, nil
	}
	nodes := make([]string, len(owners))
	for i, o := range owners {
		nodes[i] = text(o.Node)
	}
	all := args{"nodes": nodes, "now": db.clock()}
	err = db.read(ctx, func(s *steps) {
		live = nil
		s.rows(`SELECT node, incarnation FROM owners
			WHERE node = ANY (@nodes::text[]) AND lease_until > `+serverNow, all,
			func(row tables.Row) error {
				var o store.Owner
				err := row.Scan(&o.Node, &o.Incarnation)
				if slices.Contains(owners, o) {
					live = append(live, o)
				}
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("list live owners: %w", err)
	}
	return db.unposted.AddLive(live, owners), nil
}

// fencedUnlessOne returns ErrFenced unless a compare-and-set has changed one row.
func fencedUnlessOne(changed int64, err error) error {
	if err == nil && changed != 1 {
		return store.ErrFenced
	}
	return err
}
