package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// leadQuery makes the owner the leader of @names if no other owner with a lease leads one of them,
// and it does not lead all of them already. It returns the lease of the owner, the epoch, and those
// that other owners lead. No row: the owner is superseded. The transaction holds the locks of the
// names.
const leadQuery = `WITH me AS MATERIALIZED (` + leaseSeen + `),
	led AS MATERIALIZED (SELECT c.name, c.epoch, c.node, ` + holderLeased + ` AS leased,
		c.node = @node AND c.incarnation = @incarnation AS own
		FROM leads AS c WHERE c.name = ANY (@names::text[])),
	new AS MATERIALIZED (SELECT nextval('lead_epochs') AS epoch FROM me
		WHERE leased AND NOT EXISTS (SELECT 1 FROM led WHERE leased AND NOT own)
		AND (SELECT count(*) FROM led WHERE own) < cardinality(@names::text[])),
	won AS (INSERT INTO leads (name, epoch, node, incarnation)
		SELECT name, new.epoch, @node, @incarnation
		FROM new, unnest(@names::text[]) AS name ORDER BY name
		ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, node = excluded.node,
			incarnation = excluded.incarnation)
	SELECT me.leased,
		coalesce((SELECT epoch FROM new), (SELECT max(epoch) FROM led WHERE own), 0),
		(SELECT array_agg(name ORDER BY name) FROM led WHERE leased AND NOT own),
		(SELECT array_agg(node ORDER BY name) FROM led WHERE leased AND NOT own)
	FROM me`

// Lead implements [store.Leads]. To confirm a leadership it writes nothing.
func (db *DB) Lead(
	ctx context.Context, o store.Owner, names []string,
) (epoch int64, others map[string]string, err error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	all := db.ownerArguments(o)
	all["names"] = texts(names)
	var leased bool
	var led, nodes []string
	err = db.write(ctx, func(s *steps) {
		leased, led, nodes = false, nil, nil
		s.lock(lockLead, names...)
		s.row(leadQuery, all, &leased, &epoch, &led, &nodes)
	})
	if err == nil && !leased {
		err = store.ErrFenced
	}
	if err != nil {
		return 0, nil, fmt.Errorf("lead %d names as node %s: %w", len(names), o.Node, err)
	}
	for i, name := range led {
		if others == nil {
			others = map[string]string{}
		}
		others[plain(name)] = plain(nodes[i])
	}
	return epoch, others, nil
}

// Leaders implements [store.Leads].
func (db *DB) Leaders(
	ctx context.Context, names []string,
) (leaders map[string]string, err error) {
	all := args{"names": texts(names), "now": db.clock()}
	err = db.read(ctx, func(s *steps) {
		leaders = map[string]string{}
		s.rows("SELECT c.name, c.node FROM leads AS c WHERE c.name = ANY (@names::text[]) AND "+
			holderLeased, all, tables.Index(leaders, tables.ScanPair[string, string]))
	})
	if err != nil {
		return nil, fmt.Errorf("find the leaders of %d names: %w", len(names), err)
	}
	return leaders, nil
}

// LastLeads implements [store.Leads].
func (db *DB) LastLeads(
	ctx context.Context, names []string,
) (leads map[string]store.LastLead, err error) {
	all := args{"names": texts(names), "now": db.clock()}
	err = db.read(ctx, func(s *steps) {
		leads = map[string]store.LastLead{}
		s.rows(`SELECT c.name, c.node, coalesce(o.incarnation = c.incarnation, false),
				coalesce(o.lease_until > `+serverNow+`, false)
			FROM leads AS c LEFT JOIN owners AS o ON o.node = c.node
			WHERE c.name = ANY (@names::text[])`, all, tables.Index(leads, tables.ScanLastLead))
	})
	if err != nil {
		return nil, fmt.Errorf("find the last leaders of %d names: %w", len(names), err)
	}
	return leads, nil
}

// Resign implements [store.Leads].
func (db *DB) Resign(ctx context.Context, o store.Owner, names []string) error {
	all := args{"names": texts(names), "node": text(o.Node), "incarnation": o.Incarnation}
	err := db.write(ctx, func(s *steps) {
		s.lock(lockLead, names...)
		s.do(`DELETE FROM leads WHERE name = ANY (@names::text[]) AND node = @node
			AND incarnation = @incarnation`, all)
	})
	if err != nil {
		return fmt.Errorf("resign from %d names as node %s: %w", len(names), o.Node, err)
	}
	db.changed()
	return nil
}
