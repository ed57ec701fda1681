package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// SaveLearned implements [store.LearnedStates].
func (db *DB) SaveLearned(
	ctx context.Context, o store.Owner, states []store.LearnedState,
) error {
	for _, state := range states {
		if len(state.Data) > store.MaxLearnedBytes {
			return fmt.Errorf("save what was learned of pool %s: %d bytes, want at most %d",
				state.Pool, len(state.Data), store.MaxLearnedBytes)
		}
	}
	err := db.add(ctx, func(s *session) error {
		if err := db.requireLease(ctx, s, o); err != nil {
			return err
		}
		for _, state := range states {
			if err := s.exec(ctx, `INSERT OR REPLACE INTO learned (pool, kind, saved, data)
				VALUES (?, ?, ?, ?)`, state.Pool, state.Kind, tables.Micros(db.now()),
				append([]byte{}, state.Data...)); err != nil {
				return err
			}
		}
		return s.exec(ctx, `DELETE FROM learned WHERE rowid IN
			(SELECT rowid FROM learned ORDER BY saved DESC, rowid DESC LIMIT -1 OFFSET ?)`,
			store.MaxLearned)
	})
	if err != nil {
		return fmt.Errorf("save what node %s has learned: %w", o.Node, err)
	}
	return nil
}

// Learned implements [store.LearnedStates].
func (db *DB) Learned(ctx context.Context) (states []store.LearnedState, err error) {
	now := db.now()
	err = db.read(ctx, func(s *session) error {
		states = nil
		return s.rows(ctx, `SELECT pool, kind, saved, data FROM learned ORDER BY pool, kind`, nil,
			func(rows tables.Row) error {
				var state store.LearnedState
				var saved int64
				err := rows.Scan(&state.Pool, &state.Kind, &saved, &state.Data)
				state.Age = now.Sub(time.UnixMicro(saved)).Truncate(time.Microsecond)
				states = append(states, state)
				return err
			})
	})
	if err != nil {
		return nil, fmt.Errorf("read what was learned: %w", err)
	}
	return states, nil
}

// ForgetLearned implements [store.LearnedStates].
func (db *DB) ForgetLearned(ctx context.Context, pool string) (removed int, err error) {
	err = db.write(ctx, func(s *session) error {
		n, err := s.affect(ctx, `DELETE FROM learned WHERE pool = ?`, pool)
		removed = int(n)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("forget what was learned of pool %s: %w", pool, err)
	}
	return removed, nil
}
