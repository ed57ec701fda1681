package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

const insertPoolHour = `INSERT INTO pool_hours AS h (` + tables.PoolHourColumns + `, saver, save)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// addPoolHour adds or replaces a row, by what follows insertPoolHour.
func addPoolHour(
	ctx context.Context, s *session, conflict string, h store.PoolHour, saver string, number int64,
) error {
	values := append([]any{h.Pool, tables.Micros(h.Hour)}, tables.PoolHourCounts(h)...)
	return s.exec(ctx, insertPoolHour+conflict, append(values, saver, number)...)
}

// AddPoolHours implements [store.PoolHistory].
func (db *DB) AddPoolHours(
	ctx context.Context, o store.Owner, number int64, hours []store.PoolHour, before time.Time,
) error {
	err := db.add(ctx, func(s *session) error {
		if err := db.requireLease(ctx, s, o); err != nil {
			return err
		}
		for _, h := range hours {
			if err := addPoolHour(ctx, s, ` ON CONFLICT (pool, hour) DO UPDATE SET `+
				tables.AddPoolHourCounts, h, tables.Saver(o), number); err != nil {
				return err
			}
		}
		return s.exec(ctx, `DELETE FROM pool_hours WHERE hour < ?`, tables.Micros(before))
	})
	if err != nil {
		return fmt.Errorf("save the history of %d hours of pools: %w", len(hours), err)
	}
	return nil
}

// PoolHours implements [store.PoolHistory].
func (db *DB) PoolHours(
	ctx context.Context, pool string, since time.Time,
) (hours []store.PoolHour, err error) {
	query, args := `SELECT `+tables.PoolHourColumns+` FROM pool_hours WHERE hour >= ?
		ORDER BY pool, hour`, []any{tables.Micros(since)}
	if pool != "" {
		query = strings.Replace(query, "ORDER", "AND pool = ? ORDER", 1)
		args = append(args, pool)
	}
	err = db.read(ctx, func(s *session) error {
		hours = nil
		return s.rows(ctx, query, args, tables.Collect(&hours, tables.ScanPoolHour))
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of pools: %w", err)
	}
	return hours, nil
}
