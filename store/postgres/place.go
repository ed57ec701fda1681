package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/tidefill/tidefill/store/tables"
)

// Place is where an installation has the bytes of its files.
type Place struct {
	// Name says where, for people. Empty: the database does not know it yet.
	Name string
	// Marker is the content of an object or file there, by which the place is recognized.
	Marker string
}

const placeQuery = "SELECT coalesce(place, ''), coalesce(marker, '') FROM cluster"

// Place returns where the bytes of files are.
func (db *DB) Place(ctx context.Context) (p Place, err error) {
	err = db.read(ctx, func(s *steps) { s.row(placeQuery, nil, &p.Name, &p.Marker) })
	if err != nil {
		return Place{}, fmt.Errorf("read where files are: %w", err)
	}
	return p, nil
}

// SetPlace stores the place that choose returns, and returns it. Callers take turns, so choose may
// write to the place. It gets the place that is known.
func (db *DB) SetPlace(
	ctx context.Context, choose func(ctx context.Context, known Place) (Place, error),
) (p Place, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	var fault error // of choose, which is not to be translated
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		var known Place
		err := tx.QueryRow(ctx, placeQuery+" FOR UPDATE").Scan(&known.Name,
			&known.Marker)
		if err != nil {
			return err
		}
		if p, fault = choose(ctx, known); fault != nil || p == known {
			return fault
		}
		_, err = tx.Exec(ctx, "UPDATE cluster SET place = $1, marker = $2", p.Name,
			p.Marker)
		return err
	})
	if fault != nil {
		return Place{}, fault
	}
	if err != nil {
		return Place{}, fmt.Errorf("store where files are: %w", translate(ctx, err))
	}
	return p, nil
}

// NewestBlobs returns the keys of blobs that the newest files have which do not expire within an
// hour, up to limit. None: there are no such files.
func (db *DB) NewestBlobs(ctx context.Context, limit int) (keys []string, err error) {
	err = db.read(ctx, func(s *steps) {
		keys = nil
		s.rows(`SELECT min(b.blob) FROM (SELECT id, seq FROM files
				WHERE expires > tidefill_now() + 3600000000 ORDER BY seq DESC LIMIT @limit) AS f
			JOIN file_blobs AS b ON b.file = f.id GROUP BY f.seq ORDER BY f.seq DESC`,
			args{"limit": int64(limit)}, tables.Collect(&keys, tables.ScanScalar[string]))
	})
	if err != nil {
		return nil, fmt.Errorf("list the newest files: %w", err)
	}
	return keys, nil
}
