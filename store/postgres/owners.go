package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// RegisterAs sets the process that registers owners, before the first one. Without it names are
// registered whoever has them, as tests of one process do.
func (db *DB) RegisterAs(p store.Process) { db.process = encodeProcess(p) }

// Register implements [store.Owners]. A process may register its names again at any time.
func (db *DB) Register(ctx context.Context, node string, ttl time.Duration) (store.Owner, error) {
	o := store.Owner{Node: node}
	all := args{"node": text(node), "now": db.clock(), "ttl": ttl.Microseconds(),
		"process": db.process}
	var holder string
	var epoch, until int64
	err := db.write(ctx, func(s *steps) {
		o.Incarnation = 0
		s.row(`INSERT INTO owners AS o (node, incarnation, lease_until, process)
			VALUES (@node, 1, `+serverNow+` + @ttl::bigint, @process)
			ON CONFLICT (node) DO UPDATE
				SET incarnation = o.incarnation + 1, lease_until = excluded.lease_until, team = '',
					process = excluded.process
				WHERE o.process = excluded.process OR o.lease_until <= `+serverNow+`
			RETURNING incarnation`, all, &o.Incarnation)
		s.row("SELECT incarnation, lease_until, process FROM owners WHERE node = @node", all,
			&epoch, &until, &holder)
	})
	if err == nil && o.Incarnation == 0 {
		err = &store.NameTaken{Owner: store.Owner{Node: node, Incarnation: epoch},
			Holder: decodeProcess(holder), Until: time.UnixMicro(until)}
	}
	if err != nil {
		return store.Owner{}, fmt.Errorf("register node %s: %w", node, err)
	}
	return o, nil
}

// encodeProcess returns the column of a process; empty: there is none.
func encodeProcess(p store.Process) string {
	if p.ID == "" {
		return ""
	}
	doc, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and a number can be encoded
	}
	return text(string(doc))
}

// decodeProcess reads the column. One that can't be read is no process.
func decodeProcess(doc string) (p store.Process) {
	if json.Unmarshal([]byte(doc), &p) != nil {
		return store.Process{}
	}
	return p
}

// Renew implements [store.Owners].
func (db *DB) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	all := db.ownerArguments(o)
	all["ttl"] = ttl.Microseconds()
	var changed int64
	var holder string
	err := db.write(ctx, func(s *steps) {
		s.affect(&changed, `UPDATE owners SET lease_until = `+serverNow+` + @ttl::bigint
			WHERE node = @node AND incarnation = @incarnation`, all)
		s.row("SELECT process FROM owners WHERE node = @node AND lease_until > "+serverNow, all,
			&holder)
	})
	err = fencedUnlessOne(changed, err)
	if errors.Is(err, store.ErrFenced) && holder != "" && holder != db.process {
		err = fmt.Errorf("%v has taken the name: %w", decodeProcess(holder), err)
	}
	if err != nil {
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
			tables.Collect(&live, tables.ScanOwner))
	})
	if err != nil {
		return nil, fmt.Errorf("list live owners: %w", err)
	}
	return db.unposted.LiveOf(owners, live), nil
}

// fencedUnlessOne returns ErrFenced unless a compare-and-set has changed one row.
func fencedUnlessOne(changed int64, err error) error {
	if err == nil && changed != 1 {
		return store.ErrFenced
	}
	return err
}
