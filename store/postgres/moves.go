package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// NoticeEndpoints implements [store.Portable].
func (db *DB) NoticeEndpoints(ctx context.Context) (endpoints []string, err error) {
	err = db.read(ctx, func(s *steps) {
		endpoints = nil
		s.rows("SELECT endpoint FROM notice_cursors ORDER BY endpoint", nil,
			tables.Collect(&endpoints, tables.ScanScalar[string]))
	})
	if err != nil {
		return nil, fmt.Errorf("list endpoints of notices: %w", err)
	}
	return endpoints, nil
}

// KnownOwners implements [store.Portable].
func (db *DB) KnownOwners(ctx context.Context) (owners []store.KnownOwner, err error) {
	err = db.read(ctx, func(s *steps) {
		owners = nil
		s.rows("SELECT node, incarnation, lease_until - "+serverNow+" FROM owners ORDER BY node",
			args{"now": db.clock()}, tables.Collect(&owners, tables.ScanKnownOwner))
	})
	if err != nil {
		return nil, fmt.Errorf("list owners: %w", err)
	}
	return owners, nil
}

// Move implements [store.Portable]. The installation of a database that has never moved is the id
// of the cluster.
func (db *DB) Move(ctx context.Context) (m store.Move, err error) {
	var at int64
	err = db.read(ctx, func(s *steps) {
		m = store.Move{Installation: db.cluster}
		at = 0
		s.row("SELECT installation, state, peer, at FROM moves", nil, &m.Installation,
			(*string)(&m.State), &m.Peer, &at)
	})
	if err != nil {
		return store.Move{}, fmt.Errorf("read the state of moves: %w", err)
	}
	if at != 0 {
		m.At = time.UnixMicro(at).UTC()
	}
	return m, nil
}

// SetMove implements [store.Portable].
func (db *DB) SetMove(ctx context.Context, m store.Move) error {
	all := args{"installation": m.Installation, "state": string(m.State), "peer": text(m.Peer),
		"at": tables.Micros(m.At)}
	err := db.write(ctx, func(s *steps) {
		s.do("DELETE FROM moves", nil)
		s.do("INSERT INTO moves VALUES (@installation, @state, @peer, @at)", all)
		if m.State != store.MoveNone {
			return
		}
		for _, table := range []string{"files", "uploads", "parts", "batches"} {
			sequence := "pg_get_serial_sequence('" + table + "', 'seq')"
			s.do("SELECT setval("+sequence+", newest) FROM (SELECT max(seq) AS newest FROM "+
				table+") AS rows WHERE newest > coalesce(pg_sequence_last_value("+sequence+
				"::regclass), 0)", nil)
		}
	})
	if err != nil {
		return fmt.Errorf("write the state of moves: %w", err)
	}
	return nil
}
