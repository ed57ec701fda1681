package postgres

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
	newest := map[[2]string][]byte{} // by pool and kind
	for _, state := range states {
		if len(state.Data) > store.MaxLearnedBytes {
			return fmt.Errorf("save what was learned of pool %s: %d bytes, want at most %d",
				state.Pool, len(state.Data), store.MaxLearnedBytes)
		}
		newest[[2]string{text(state.Pool), text(state.Kind)}] = append([]byte{}, state.Data...)
	}
	pools, kinds, data := []string{}, []string{}, [][]byte{}
	for key, content := range newest {
		pools, kinds, data = append(pools, key[0]), append(kinds, key[1]), append(data, content)
	}
	all := db.ownerArguments(o)
	all["pools"], all["kinds"], all["data"], all["most"] = pools, kinds, data,
		int64(store.MaxLearned)
	err := db.write(ctx, func(s *steps) {
		s.require(refusedFenced, "its lease has ended", leaseSeen, all)
		// In the same order as other processes, against deadlocks.
		s.do(`INSERT INTO learned AS l (pool, kind, saved, data)
			SELECT pool, kind, `+serverNow+`, data
			FROM unnest(@pools::text[], @kinds::text[], @data::bytea[]) AS new (pool, kind, data)
			ORDER BY pool COLLATE "C", kind COLLATE "C"
			ON CONFLICT (pool, kind) DO UPDATE SET saved = excluded.saved, data = excluded.data`,
			all)
		s.do(`DELETE FROM learned WHERE (pool, kind) IN (SELECT pool, kind FROM learned
			ORDER BY saved DESC, pool, kind OFFSET @most FOR UPDATE SKIP LOCKED)`, all)
	})
	if err != nil {
		return fmt.Errorf("save what node %s has learned: %w", o.Node, err)
	}
	return nil
}

// Learned implements [store.LearnedStates].
func (db *DB) Learned(ctx context.Context) (states []store.LearnedState, err error) {
	all := args{"now": db.clock()}
	err = db.read(ctx, func(s *steps) {
		states = nil
		s.rows(`SELECT pool, kind, data, `+serverNow+` - saved FROM learned
			ORDER BY pool, kind`, all, func(row tables.Row) error {
			var state store.LearnedState
			var age int64
			err := row.Scan(&state.Pool, &state.Kind, &state.Data, &age)
			state.Age = time.Duration(age) * time.Microsecond
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
func (db *DB) ForgetLearned(ctx context.Context, pool string) (int, error) {
	var removed int64
	err := db.write(ctx, func(s *steps) {
		s.affect(&removed, "DELETE FROM learned WHERE pool = @pool", args{"pool": text(pool)})
	})
	if err != nil {
		return 0, fmt.Errorf("forget what was learned of pool %s: %w", pool, err)
	}
	return int(removed), nil
}
