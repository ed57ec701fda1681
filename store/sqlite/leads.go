package sqlite

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Lead implements [store.Leads]. To confirm a leadership it writes nothing.
func (db *DB) Lead(
	ctx context.Context, o store.Owner, names []string,
) (epoch int64, others map[string]string, err error) {
	err = db.write(ctx, func(s *session) error {
		leased, err := db.leased(ctx, s, o)
		if err != nil {
			return err
		}
		if !leased {
			return store.ErrFenced
		}
		list, err := jsonList(names)
		if err != nil {
			return err
		}
		led, err := s.leads(ctx, list, tables.Micros(db.now()))
		if err != nil {
			return err
		}
		own := 0
		for name, holder := range led {
			switch {
			case holder.Owner == o:
				own++
				epoch = max(epoch, holder.epoch)
			case holder.leased:
				if others == nil {
					others = map[string]string{}
				}
				others[name] = holder.Node
			}
		}
		if len(others) > 0 || own == len(names) {
			return nil
		}
		if err := s.row(ctx, "UPDATE lead_epochs SET newest = newest + 1 RETURNING newest", nil,
			&epoch); err != nil {
			return err
		}
		return s.exec(
			ctx, `INSERT OR REPLACE INTO leads (name, epoch, node, incarnation)
				SELECT value, ?, ?, ? FROM json_each(?)`,
			epoch, o.Node, o.Incarnation, list)
	})
	if err != nil {
		return 0, nil, fmt.Errorf("lead %d names as node %s: %w", len(names), o.Node, err)
	}
	return epoch, others, nil
}

// Leaders implements [store.Leads].
func (db *DB) Leaders(
	ctx context.Context, names []string,
) (leaders map[string]string, err error) {
	list, err := jsonList(names)
	var led map[string]leader
	if err == nil {
		err = db.read(ctx, func(s *session) (err error) {
			led, err = s.leads(ctx, list, tables.Micros(db.now()))
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("find the leaders of %d names: %w", len(names), err)
	}
	leaders = map[string]string{}
	for name, holder := range led {
		if holder.leased {
			leaders[name] = holder.Node
		}
	}
	return leaders, nil
}

// LastLeads implements [store.Leads].
func (db *DB) LastLeads(
	ctx context.Context, names []string,
) (leads map[string]store.LastLead, err error) {
	list, err := jsonList(names)
	leads = map[string]store.LastLead{}
	if err == nil {
		err = db.read(ctx, func(s *session) error {
			return s.rows(ctx, `SELECT c.name, c.node, coalesce(o.incarnation = c.incarnation, 0),
					coalesce(o.lease_until > ?, 0)
				FROM leads AS c LEFT JOIN owners AS o ON o.node = c.node
				WHERE c.name IN (SELECT value FROM json_each(?))`,
				[]any{tables.Micros(db.now()), list}, tables.Index(leads, tables.ScanLastLead))
		})
	}
	if err != nil {
		return nil, fmt.Errorf("find the last leaders of %d names: %w", len(names), err)
	}
	return leads, nil
}

// Resign implements [store.Leads].
func (db *DB) Resign(ctx context.Context, o store.Owner, names []string) error {
	list, err := jsonList(names)
	if err == nil {
		err = db.write(ctx, func(s *session) error {
			return s.exec(ctx, `DELETE FROM leads WHERE name IN (SELECT value FROM json_each(?))
				AND node = ? AND incarnation = ?`, list, o.Node, o.Incarnation)
		})
	}
	if err != nil {
		return fmt.Errorf("resign from %d names as node %s: %w", len(names), o.Node, err)
	}
	return nil
}

// leader is the owner that leads a name.
type leader struct {
	store.Owner
	epoch  int64
	leased bool // its lease lasts
}

// leads returns the leaders of the names.
func (s *session) leads(ctx context.Context, names string, now int64) (map[string]leader, error) {
	led := map[string]leader{}
	err := s.rows(ctx, `SELECT c.name, c.epoch, c.node, c.incarnation, `+holderLeased+`
		FROM leads AS c WHERE c.name IN (SELECT value FROM json_each(?))`, []any{now, names},
		func(rows tables.Row) error {
			var name string
			var l leader
			err := rows.Scan(&name, &l.epoch, &l.Node, &l.Incarnation, &l.leased)
			led[name] = l
			return err
		})
	return led, err
}
