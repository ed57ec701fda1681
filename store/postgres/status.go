package postgres

import (
	"context"
	"fmt"
	"time"
)

// Newest implements [store.Status]. It reads the newest rows only.
func (db *DB) Newest(ctx context.Context) (time.Time, error) {
	var newest int64
	err := db.read(ctx, func(s *steps) {
		s.row(`SELECT coalesce(max(at), 0)::bigint FROM (
			(SELECT created AS at FROM files ORDER BY seq DESC LIMIT 1)
			UNION ALL (SELECT created FROM batches ORDER BY seq DESC LIMIT 1)
			UNION ALL SELECT max(ended) FROM batches WHERE ended > 0
			UNION ALL SELECT max(lease_until) FROM owners) AS times`, nil, &newest)
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the newest time: %w", err)
	}
	if newest <= 0 {
		return time.Time{}, nil
	}
	return time.UnixMicro(newest).UTC(), nil
}

// Ping implements [store.Status].
func (db *DB) Ping(ctx context.Context) error {
	var version int
	err := db.read(ctx, func(s *steps) {
		s.row("SELECT version FROM schema_version", nil, &version)
	})
	if err != nil {
		return fmt.Errorf("ping PostgreSQL: %w", err)
	}
	return nil
}

// PoolStats describes the connections of this process.
type PoolStats struct {
	Open, InUse, Most int           // connections now, and their limit
	Waits             int64         // calls that waited for a connection
	Waited            time.Duration // the time of these waits, over all calls
	Opened            int64         // connections opened since the start
}

// PoolStats returns the state of the connections.
func (db *DB) PoolStats() PoolStats {
	s := db.pool.Stat()
	return PoolStats{Open: int(s.TotalConns()), InUse: int(s.AcquiredConns()),
		Most: int(s.MaxConns()), Waits: s.EmptyAcquireCount(), Waited: s.EmptyAcquireWaitTime(),
		Opened: s.NewConnsCount()}
}
