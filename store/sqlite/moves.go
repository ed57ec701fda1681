package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// NoticeEndpoints implements [store.Portable].
func (db *DB) NoticeEndpoints(ctx context.Context) (endpoints []string, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.rows(ctx, "SELECT endpoint FROM notice_cursors ORDER BY endpoint", nil,
			tables.Collect(&endpoints, tables.ScanScalar[string]))
	})
	if err != nil {
		return nil, fmt.Errorf("list endpoints of notices: %w", err)
	}
	return endpoints, nil
}

// KnownOwners implements [store.Portable].
func (db *DB) KnownOwners(ctx context.Context) (owners []store.KnownOwner, err error) {
	err = db.read(ctx, func(s *session) error {
		return s.rows(ctx, `SELECT node, incarnation, lease_until - ? FROM owners ORDER BY node`,
			[]any{tables.Micros(db.now())}, tables.Collect(&owners, tables.ScanKnownOwner))
	})
	if err != nil {
		return nil, fmt.Errorf("list owners: %w", err)
	}
	return owners, nil
}

// Move implements [store.Portable].
func (db *DB) Move(ctx context.Context) (m store.Move, err error) {
	var at int64
	err = db.read(ctx, func(s *session) error {
		err := s.row(ctx, "SELECT installation, state, peer, at FROM moves", nil, &m.Installation,
			&m.State, &m.Peer, &at)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return store.Move{}, fmt.Errorf("read the state of moves: %w", err)
	}
	if at != 0 {
		m.At = time.UnixMicro(at).UTC()
	}
	return m, nil
}

// SetMove implements [store.Portable]. SQLite itself numbers new rows above all earlier ones.
func (db *DB) SetMove(ctx context.Context, m store.Move) error {
	err := db.write(ctx, func(s *session) error {
		if err := s.exec(ctx, "DELETE FROM moves"); err != nil {
			return err
		}
		return s.exec(ctx, "INSERT INTO moves VALUES (?, ?, ?, ?)", m.Installation, m.State,
			m.Peer, tables.Micros(m.At))
	})
	if err != nil {
		return fmt.Errorf("write the state of moves: %w", err)
	}
	return nil
}
