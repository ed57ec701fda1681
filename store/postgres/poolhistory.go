package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

const insertPoolHour = `INSERT INTO pool_hours AS h (` + tables.PoolHourColumns + `, saver, save)
	VALUES (@pool, @hour, @c0, @c1, @c2, @c3, @c4, @c5, @c6, @c7, @c8, @c9, @c10, @saver, @save)`

func poolHourArguments(h store.PoolHour, saver string, number int64) args {
	all := args{"pool": text(h.Pool), "hour": tables.Micros(h.Hour), "saver": text(saver),
		"save": number}
	for i, count := range tables.PoolHourCounts(h) {
		all[fmt.Sprint("c", i)] = count
	}
	return all
}

// AddPoolHours implements [store.PoolHistory].
func (db *DB) AddPoolHours(
	ctx context.Context, o store.Owner, number int64, hours []store.PoolHour, before time.Time,
) error {
	// In the same order as other processes, against deadlocks.
	sorted := slices.SortedFunc(slices.Values(hours), func(a, b store.PoolHour) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), a.Hour.Compare(b.Hour))
	})
	err := db.write(ctx, func(s *steps) {
		s.require(refusedFenced, "its lease has ended", leaseSeen, db.ownerArguments(o))
		for _, h := range sorted {
			s.do(insertPoolHour+` ON CONFLICT (pool, hour) DO UPDATE SET `+
				tables.AddPoolHourCounts, poolHourArguments(h, tables.Saver(o), number))
		}
		s.do(`DELETE FROM pool_hours WHERE (pool, hour) IN (SELECT pool, hour FROM pool_hours
			WHERE hour < @before FOR UPDATE SKIP LOCKED)`, args{"before": tables.Micros(before)})
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
	err = db.read(ctx, func(s *steps) {
		hours = nil
		s.rows(`SELECT `+tables.PoolHourColumns+` FROM pool_hours
			WHERE hour >= @since AND (@pool::text = '' OR pool = @pool::text)
			ORDER BY `+raw("pool")+`, hour`,
			args{"since": tables.Micros(since), "pool": text(pool)},
			tables.Collect(&hours, tables.ScanPoolHour))
	})
	if err != nil {
		return nil, fmt.Errorf("read the history of pools: %w", err)
	}
	return hours, nil
}
