package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

// wakeEvery is the interval at which the file is looked at. Half of it is what a change waits on
// average; a look takes some microseconds and reads shared memory only.
const wakeEvery = 40 * time.Millisecond

var _ store.Waker = (*DB)(nil)

// WakeOnChange implements [store.Waker] by a number that SQLite changes with every commit of
// another connection, of this process or of another one.
func (db *DB) WakeOnChange(ctx context.Context, wake func()) error {
	conn, err := db.pool.Conn(ctx)
	if err != nil {
		return fmt.Errorf("watch for changes: %w", translate(ctx, err))
	}
	defer conn.Close()
	version, err := conn.PrepareContext(ctx, "PRAGMA data_version")
	if err != nil {
		return fmt.Errorf("watch for changes: %w", translate(ctx, err))
	}
	defer version.Close()
	tick := time.NewTicker(wakeEvery)
	defer tick.Stop()
	for known := int64(-1); ; {
		var now int64
		if err := version.QueryRowContext(ctx).Scan(&now); err != nil {
			return fmt.Errorf("watch for changes: %w", translate(ctx, err))
		}
		if now != known && known >= 0 {
			wake()
		}
		known = now
		select {
		case <-ctx.Done():
			return nil
		case <-db.readers.closed:
			return nil
		case <-tick.C:
		}
	}
}
