package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// cursor is the position of a reader of changes: the server that it has read, its timeline, and
// which transactions of the timeline it has read. All of earlier timelines were read.
type cursor struct {
	system   string
	timeline int64
	read     snapshot
}

func (c cursor) String() string {
	return fmt.Sprintf("%s/%d/%s", c.system, c.timeline, c.read)
}

func parseCursor(c store.Cursor) (cursor, error) {
	parts := strings.Split(string(c), "/")
	if len(parts) != 3 {
		return cursor{}, store.ErrBadCursor
	}
	timeline, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return cursor{}, store.ErrBadCursor
	}
	read, err := parseSnapshot(parts[2])
	if err != nil {
		return cursor{}, store.ErrBadCursor
	}
	return cursor{parts[0], timeline, read}, nil
}

// change is a row of the feed.
type change struct {
	id       string
	timeline int64
	changed  uint64
}

// ChangedBatches implements [store.Changes]. A cursor stays valid when a standby is promoted. One
// of another server, such as that from which a dump was restored, is ErrBadCursor.
func (db *DB) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) (ids []string, next store.Cursor, err error) {
	var reached cursor
	if after == "" {
		ids, reached, err = db.liveBatches(ctx)
	} else {
		ids, reached, err = db.changedBatches(ctx, after, limit)
	}
	if err != nil {
		return nil, "", fmt.Errorf("list batches changed after %q: %w", after, err)
	}
	db.seen(reached.timeline)
	return ids, store.Cursor(reached.String()), nil
}

// position of the snapshot that a statement reads by.
const currentPosition = "SELECT tidefill_timeline() AS timeline, " +
	"pg_current_snapshot()::text AS snapshot"

// liveBatches returns all batches that are not terminal, and the position of the snapshot that saw
// them.
func (db *DB) liveBatches(ctx context.Context) (ids []string, reached cursor, err error) {
	var seen string
	err = db.read(ctx, func(s *steps) {
		ids = nil
		s.rows(`WITH here AS MATERIALIZED (`+currentPosition+`)
			SELECT here.timeline, here.snapshot, live.id FROM here LEFT JOIN
				(SELECT id, timeline, changed FROM batches WHERE ended = 0) AS live ON true
			ORDER BY live.timeline, live.changed`, nil, func(row tables.Row) error {
			var id *string
			err := row.Scan(&reached.timeline, &seen, &id)
			if id != nil {
				ids = append(ids, *id)
			}
			return err
		})
	})
	if err == nil {
		reached.system = db.system
		reached.read, err = parseSnapshot(seen)
	}
	return ids, reached, err
}

// changesQuery selects what a cursor has not read: of its timeline, the changes that its snapshot
// does not see, and all of later timelines. Both are ranges of one index.
const changesQuery = `WITH here AS MATERIALIZED (` + currentPosition + `),
	new AS ((SELECT id, timeline, changed FROM batches
			WHERE timeline = @timeline AND changed >= pg_snapshot_xmin(@read::text::pg_snapshot)
			AND NOT pg_visible_in_snapshot(changed, @read::text::pg_snapshot)
			ORDER BY timeline, changed LIMIT @limit)
		UNION ALL (SELECT id, timeline, changed FROM batches WHERE timeline > @timeline
			ORDER BY timeline, changed LIMIT @limit))
	SELECT here.timeline, here.snapshot, new.id, new.timeline, new.changed::text
	FROM here LEFT JOIN new ON true ORDER BY new.timeline, new.changed LIMIT @limit`

func (db *DB) changedBatches(
	ctx context.Context, after store.Cursor, limit int,
) (ids []string, reached cursor, err error) {
	from, err := parseCursor(after)
	if err != nil {
		return nil, from, err
	}
	if from.system != db.system {
		return nil, from, fmt.Errorf("it is of another server: %w", store.ErrBadCursor)
	}
	limit = max(limit, 1)
	var here cursor
	var seen string
	var last change
	err = db.read(ctx, func(s *steps) {
		ids = nil
		s.rows(changesQuery, args{"timeline": from.timeline, "read": from.read.String(),
			"limit": int64(limit)}, func(row tables.Row) error {
			var id, changed *string
			var timeline *int64
			err := row.Scan(&here.timeline, &seen, &id, &timeline, &changed)
			if err != nil || id == nil {
				return err
			}
			last = change{id: *id, timeline: *timeline}
			ids = append(ids, last.id)
			last.changed, err = strconv.ParseUint(*changed, 10, 64)
			return err
		})
	})
	if err != nil {
		return nil, from, err
	}
	here.system = db.system
	if here.read, err = parseSnapshot(seen); err != nil {
		return nil, from, err
	}
	if len(ids) < limit {
		return ids, here, nil
	}
	return ids, from.through(last, here), nil
}

// through returns the position after a change, up to which all changes were read that the position
// here sees.
func (c cursor) through(last change, here cursor) cursor {
	if last.timeline > c.timeline {
		c.timeline, c.read = last.timeline, snapshot{}
	}
	if last.timeline < here.timeline {
		here.read = snapshot{} // its transactions are over
	}
	c.read = c.read.through(last.changed, here.read)
	return c
}

// seen takes the timeline of the server. Each promotion of a standby begins a new one.
func (db *DB) seen(timeline int64) {
	for before := db.timeline.Load(); timeline > before; before = db.timeline.Load() {
		if db.timeline.CompareAndSwap(before, timeline) {
			if before > 0 {
				db.promoted()
			}
			return
		}
	}
}
