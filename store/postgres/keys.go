package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store/tables"
)

// sweptKeys is the number of expired keys that a new one removes. It is above one, so that their
// number falls.
const sweptKeys = 8

// Remember implements [store.Keys].
func (db *DB) Remember(
	ctx context.Context, tenant, key, value string, ttl time.Duration,
) (stored string, fresh bool, err error) {
	all := args{"tenant": text(tenant), "key": text(key), "value": text(value), "now": db.clock(),
		"ttl": ttl.Microseconds(), "limit": int64(sweptKeys)}
	err = db.write(ctx, func(s *steps) {
		fresh = false
		// A key that has a value is locked too, so that the next statement finds it.
		s.rows(`INSERT INTO idempotency_keys AS k (tenant, key, value, expires)
			VALUES (@tenant, @key, @value, `+serverNow+` + @ttl::bigint)
			ON CONFLICT (tenant, key) DO UPDATE
				SET value = excluded.value, expires = excluded.expires
				WHERE k.expires <= `+serverNow+` RETURNING 1`, all, func(tables.Row) error {
			fresh = true
			return nil
		})
		s.row("SELECT value FROM idempotency_keys WHERE tenant = @tenant AND key = @key", all,
			&stored)
		s.do(`DELETE FROM idempotency_keys WHERE (tenant, key) IN
			(SELECT tenant, key FROM idempotency_keys WHERE expires <= `+serverNow+`
			ORDER BY expires LIMIT @limit FOR UPDATE SKIP LOCKED)`, all)
	})
	if err != nil {
		return "", false, fmt.Errorf("remember idempotency key: %w", err)
	}
	return stored, fresh, nil
}

// Forget implements [store.Keys].
func (db *DB) Forget(ctx context.Context, tenant, key, value string) error {
	err := db.write(ctx, func(s *steps) {
		s.do(`DELETE FROM idempotency_keys
			WHERE tenant = @tenant AND key = @key AND value = @value`,
			args{"tenant": text(tenant), "key": text(key), "value": text(value)})
	})
	if err != nil {
		return fmt.Errorf("forget idempotency key: %w", err)
	}
	return nil
}
