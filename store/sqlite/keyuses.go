package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

func noteKey(ctx context.Context, s *session, u store.KeyUse) error {
	return s.exec(ctx, "INSERT INTO key_uses AS k (hash, used) VALUES (?, ?)"+
		tables.KeepLatestUse, u.Hash, tables.Micros(u.At))
}

// NoteKeys implements [store.KeyUses].
func (db *DB) NoteKeys(ctx context.Context, uses []store.KeyUse, before time.Time) error {
	err := db.add(ctx, func(s *session) error {
		for _, u := range uses {
			if err := noteKey(ctx, s, u); err != nil {
				return err
			}
		}
		return s.exec(ctx, "DELETE FROM key_uses WHERE used < ?", tables.Micros(before))
	})
	if err != nil {
		return fmt.Errorf("save the last use of %d keys: %w", len(uses), err)
	}
	return nil
}

// UsedKeys implements [store.KeyUses].
func (db *DB) UsedKeys(ctx context.Context) (uses []store.KeyUse, err error) {
	err = db.read(ctx, func(s *session) error {
		uses = nil
		return s.rows(ctx, tables.SelectKeyUses+"hash", nil,
			tables.Collect(&uses, tables.ScanKeyUse))
	})
	if err != nil {
		return nil, fmt.Errorf("read when keys were last used: %w", err)
	}
	return uses, nil
}
