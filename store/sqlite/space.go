package sqlite

import "context"

// freeSpace gives up the reserve, and brings the WAL into the database so that the next write begins
// it anew, in room that the file has already. It reports whether another try is worth while.
func (db *DB) freeSpace(ctx context.Context) bool {
	given := db.space != nil && db.space.FreeReserve()
	emptied, err := db.checkpoint(ctx)
	return given || err == nil && emptied
}

// checkpoint reports whether all of the WAL is in the database now.
func (db *DB) checkpoint(ctx context.Context) (whole bool, err error) {
	s, err := db.writer.take(ctx)
	if err != nil {
		return false, err
	}
	defer db.writer.give(s)
	var busy, frames, moved int
	err = s.row(ctx, "PRAGMA wal_checkpoint(RESTART)", nil, &busy, &frames, &moved)
	return busy == 0 && frames == moved, err
}
