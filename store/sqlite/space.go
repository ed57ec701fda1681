package sqlite

import "context"

// freeSpace releases the reserve, and checkpoints the WAL so that the next write overwrites it from
// its start. It reports whether another try may succeed.
func (db *DB) freeSpace(ctx context.Context) bool {
	released := db.space != nil && db.space.FreeReserve()
	emptied, err := db.checkpoint(ctx)
	return released || err == nil && emptied
}

// checkpoint moves the WAL into the database and reports whether all of it was moved.
func (db *DB) checkpoint(ctx context.Context) (complete bool, err error) {
	s, err := db.writer.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer db.writer.release(s)
	var busy, frames, moved int
	err = s.row(ctx, "PRAGMA wal_checkpoint(RESTART)", nil, &busy, &frames, &moved)
	return busy == 0 && frames == moved, err
}
