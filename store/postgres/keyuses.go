package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// noteKeys stores uses in the same order as other processes, against deadlocks.
func (s *steps) noteKeys(uses ...store.KeyUse) {
	hashes, times := []string{}, []int64{}
	for _, u := range uses {
		hashes, times = append(hashes, text(u.Hash)), append(times, tables.Micros(u.At))
	}
	s.do(`INSERT INTO key_uses AS k (hash, used)
		SELECT hash, max(used) FROM unnest(@hashes::text[], @times::bigint[]) AS new (hash, used)
		GROUP BY hash ORDER BY hash COLLATE "C"`+tables.KeepLatestUse,
		args{"hashes": hashes, "times": times})
}

// NoteKeys implements [store.KeyUses].
func (db *DB) NoteKeys(ctx context.Context, uses []store.KeyUse, before time.Time) error {
	err := db.write(ctx, func(s *steps) {
		s.noteKeys(uses...)
		s.do(`DELETE FROM key_uses WHERE hash IN
			(SELECT hash FROM key_uses WHERE used < @before FOR UPDATE SKIP LOCKED)`,
			args{"before": tables.Micros(before)})
	})
	if err != nil {
		return fmt.Errorf("save the last use of %d keys: %w", len(uses), err)
	}
	return nil
}

// UsedKeys implements [store.KeyUses].
func (db *DB) UsedKeys(ctx context.Context) (uses []store.KeyUse, err error) {
	err = db.read(ctx, func(s *steps) {
		uses = nil
		s.rows(tables.SelectKeyUses+raw("hash"), nil, tables.Collect(&uses, tables.ScanKeyUse))
	})
	if err != nil {
		return nil, fmt.Errorf("read when keys were last used: %w", err)
	}
	return uses, nil
}
