package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// sweptKeys is the number of expired keys that a new one removes. It is above one, so that their
// number falls.
const sweptKeys = 8

// Remember implements [store.Keys].
func (db *DB) Remember(
	ctx context.Context, tenant, key, value string, ttl time.Duration,
) (stored string, fresh bool, err error) {
	err = db.add(ctx, func(s *session) error {
		now := db.now()
		err := s.row(
			ctx, "SELECT value FROM idempotency_keys WHERE tenant = ? AND key = ? AND expires > ?",
			[]any{tenant, key, tables.Micros(now)}, &stored)
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
		stored, fresh = value, true
		err = s.exec(ctx, `INSERT OR REPLACE INTO idempotency_keys (tenant, key, value, expires)
			VALUES (?, ?, ?, ?)`, tenant, key, value, tables.Micros(now.Add(ttl)))
		if err != nil {
			return err
		}
		return s.exec(ctx, `DELETE FROM idempotency_keys WHERE (tenant, key) IN
			(SELECT tenant, key FROM idempotency_keys WHERE expires <= ? ORDER BY expires LIMIT ?)`,
			tables.Micros(now), sweptKeys)
	})
	if err != nil {
		return "", false, fmt.Errorf("remember idempotency key: %w", err)
	}
	return stored, fresh, nil
}

// Forget implements [store.Keys].
func (db *DB) Forget(ctx context.Context, tenant, key, value string) error {
	err := db.write(ctx, func(s *session) error {
		return s.exec(ctx, `DELETE FROM idempotency_keys WHERE tenant = ? AND key = ?
			AND value = ?`, tenant, key, value)
	})
	if err != nil {
		return fmt.Errorf("forget idempotency key: %w", err)
	}
	return nil
}
