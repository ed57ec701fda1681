package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// identify reads which installation and which server this is.
func (db *DB) identify(ctx context.Context) error {
	err := db.read(ctx, func(s *steps) {
		s.row(`SELECT id, (SELECT system_identifier::text FROM pg_control_system()) FROM cluster`,
			nil, &db.cluster, &db.system)
	})
	if err == nil && db.cluster == "" {
		err = errors.New("the table cluster has no row; restore the database from a backup")
	}
	if err != nil {
		return fmt.Errorf("read the cluster id: %w", err)
	}
	return nil
}

// ClusterID returns the id of this installation, which the first migration made. Whatever else
// belongs to the installation, such as a bucket, carries the same id.
func (db *DB) ClusterID() string { return db.cluster }

// ClockOffset returns the time by which the server's clock is ahead of the local one, measured to
// about half a round trip.
func (db *DB) ClockOffset(ctx context.Context) (time.Duration, error) {
	var server int64
	var before, after time.Time
	err := db.read(ctx, func(s *steps) {
		before = time.Now()
		s.row("SELECT tidefill_now()", nil, &server)
	})
	after = time.Now()
	if err != nil {
		return 0, fmt.Errorf("read the clock of the server: %w", err)
	}
	return time.UnixMicro(server).Sub(before.Add(after.Sub(before) / 2)), nil
}
