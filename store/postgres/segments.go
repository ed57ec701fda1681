package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/tables"
)

// Segments is the register of journal segments in the database.
//
// A registration locks the rows of its chunks, in one order, so that those of the same chunk follow
// each other. The sweep's boundary is guarded by an advisory lock, which registrations share.
// Whether a segment has ranges left is a count in its row, so that two removals agree about it.
type Segments struct{ db *DB }

var _ segments.Registry = Segments{}

// Segments returns the register of journal segments.
func (db *DB) Segments() Segments { return Segments{db} }

// lockSweep is the name of the advisory lock of the boundary.
const lockSweep = "sweep"

// Enroll implements [segments.Registry].
func (r Segments) Enroll(ctx context.Context) (process int64, now segments.Stamp, err error) {
	err = r.db.write(ctx, func(s *steps) {
		s.row("SELECT nextval('segment_processes'), "+serverNow, args{"now": r.db.clock()},
			&process, (*int64)(&now))
	})
	if err != nil {
		return 0, 0, fmt.Errorf("enroll a process that writes segments: %w", err)
	}
	return process, now, nil
}

// Now implements [segments.Registry].
func (r Segments) Now(ctx context.Context) (now segments.Stamp, err error) {
	err = r.db.read(ctx, func(s *steps) {
		s.row("SELECT "+serverNow, args{"now": r.db.clock()}, (*int64)(&now))
	})
	if err != nil {
		return 0, fmt.Errorf("read the clock of the server: %w", err)
	}
	return now, nil
}

// Fence implements [segments.Registry].
func (r Segments) Fence(
	ctx context.Context, fences ...segments.Fence,
) (ranges []segments.Range, err error) {
	chunks, epochs := make([]store.ChunkID, len(fences)), make([]int64, len(fences))
	for i, f := range fences {
		chunks[i], epochs[i] = f.Chunk, f.Epoch
	}
	all := chunkArguments(chunks)
	all["epochs"] = epochs
	err = r.db.write(ctx, func(s *steps) {
		ranges = nil
		s.do(fenceQuery, withRefusal(all, refusedFenced, "its journal has a higher epoch"))
		s.ranges(&ranges, chunks)
	})
	if err != nil {
		return nil, fmt.Errorf("fence %s: %w", listed(chunks), err)
	}
	return ranges, nil
}

// fenceQuery sets the epochs of all chunks, or fails.
const fenceQuery = `WITH fenced AS (INSERT INTO journals AS j (batch, idx, epoch, bytes)
		SELECT batch, idx, epoch, 0 FROM unnest(@batches::text[], @indexes::bigint[],
			@epochs::bigint[]) AS f (batch, idx, epoch) ORDER BY batch, idx
		ON CONFLICT (batch, idx) DO UPDATE SET epoch = excluded.epoch
			WHERE j.epoch <= excluded.epoch RETURNING 1)
	SELECT tidefill_require((SELECT count(*) FROM fenced) = cardinality(@indexes::bigint[]),
		@require_code::text, @require_message::text)`

// listed names chunks in an error.
func listed(chunks []store.ChunkID) string {
	if len(chunks) == 0 {
		return "no chunk"
	}
	first := fmt.Sprintf("chunk %d of batch %s", chunks[0].Index, chunks[0].Batch)
	if len(chunks) == 1 {
		return first
	}
	return fmt.Sprintf("%s and %d more", first, len(chunks)-1)
}

// Ranges implements [segments.Registry].
func (r Segments) Ranges(
	ctx context.Context, chunks ...store.ChunkID,
) (ranges []segments.Range, err error) {
	err = r.db.read(ctx, func(s *steps) {
		ranges = nil
		s.ranges(&ranges, chunks)
	})
	if err != nil {
		return nil, fmt.Errorf("read the ranges of %s: %w", listed(chunks), err)
	}
	return ranges, nil
}

// ranges reads the ranges of chunks.
func (s *steps) ranges(ranges *[]segments.Range, chunks []store.ChunkID) {
	s.rows(`SELECT c.n, g.key, r.place, r.length, r.at FROM
			unnest(@batches::text[], @indexes::bigint[]) WITH ORDINALITY AS c (batch, idx, n)
			JOIN journals AS j ON j.batch = c.batch AND j.idx = c.idx
			JOIN segment_ranges AS r ON r.journal = j.id JOIN segments AS g ON g.id = r.segment
		ORDER BY c.n, r.at`,
		chunkArguments(chunks), func(row tables.Row) error {
			var found segments.Range
			var key string
			var n int
			err := row.Scan(&n, &key, &found.Offset, &found.Length, &found.At)
			if err == nil {
				found.Chunk = chunks[n-1]
				found.Key, err = parseKey(key)
			}
			*ranges = append(*ranges, found)
			return err
		})
}

func parseKey(name string) (segments.Key, error) {
	key, err := segments.ParseKey(name)
	if err != nil {
		return key, fmt.Errorf("%w: %w", tables.ErrDocument, err)
	}
	return key, nil
}

// admit begins a transaction that registers a segment: it ends with ErrSwept or ErrExists unless
// the key may be registered, and then locks the journals of the chunks.
func (s *steps) admit(key segments.Key, chunks args) {
	s.share(lockSweep, "")
	s.require(refusedSwept, "the sweep has passed its key",
		"SELECT through < @stamp FROM segment_sweep", args{"stamp": int64(key.Stamp)})
	s.require(refusedExists, "its key is known",
		"NOT EXISTS (SELECT 1 FROM segments WHERE key = @key)", args{"key": key.String()})
	s.do(`SELECT 1 FROM journals AS j WHERE (batch, idx) IN
			(SELECT * FROM unnest(@batches::text[], @indexes::bigint[]))
		ORDER BY j.id FOR UPDATE`, chunks)
}

// registerQuery appends the parts that have the epochs of their chunks to the journals, and
// registers the segment if there are any.
const registerQuery = `WITH parts AS (SELECT * FROM unnest(@batches::text[], @indexes::bigint[],
		@epochs::bigint[], @places::bigint[], @lengths::bigint[]) WITH ORDINALITY
		AS p (batch, idx, epoch, place, length, n)),
	grown AS (UPDATE journals AS j SET bytes = j.bytes + p.length FROM parts AS p
		WHERE j.batch = p.batch AND j.idx = p.idx AND j.epoch = p.epoch
		RETURNING j.id, j.bytes - p.length AS at, p.length, p.place, p.n),
	added AS (INSERT INTO segments (key, stamp, bytes, ranges)
		SELECT @key, @stamp, @bytes, count(*) FROM grown HAVING count(*) > 0 RETURNING id),
	placed AS (INSERT INTO segment_ranges (journal, at, length, segment, place)
		SELECT g.id, g.at, g.length, added.id, g.place FROM grown AS g, added)
	SELECT n, at FROM grown`

// Register implements [segments.Registry].
func (r Segments) Register(
	ctx context.Context, seg segments.Segment,
) (done segments.Registered, err error) {
	places, lengths, epochs := []int64{}, []int64{}, []int64{}
	chunks := make([]store.ChunkID, len(seg.Parts))
	for i, p := range seg.Parts {
		chunks[i] = p.Chunk
		places, lengths = append(places, p.Offset), append(lengths, p.Length)
		epochs = append(epochs, p.Epoch)
	}
	all := chunkArguments(chunks)
	all["epochs"], all["places"], all["lengths"] = epochs, places, lengths
	all["key"], all["stamp"], all["bytes"] = seg.Key.String(), int64(seg.Key.Stamp), seg.Bytes
	var at map[int]int64 // by index of the part
	err = r.db.write(ctx, func(s *steps) {
		at = map[int]int64{}
		s.admit(seg.Key, all)
		s.rows(registerQuery, all, func(row tables.Row) error {
			var n int
			var position int64
			err := row.Scan(&n, &position)
			at[n-1] = position
			return err
		})
		s.row("SELECT "+serverNow, args{"now": r.db.clock()}, (*int64)(&done.Now))
	})
	if err != nil {
		return segments.Registered{}, fmt.Errorf("register segment %v: %w", seg.Key, swept(err))
	}
	for i, p := range seg.Parts {
		position, counts := at[i]
		if !counts {
			done.Fenced = append(done.Fenced, p.Chunk)
			continue
		}
		done.Ranges = append(done.Ranges, segments.Range{Chunk: p.Chunk, Key: seg.Key,
			Offset: p.Offset, Length: p.Length, At: position})
	}
	return done, nil
}

// chunkArguments returns the arguments that name chunks.
func chunkArguments(chunks []store.ChunkID) args {
	batches, indexes := make([]string, len(chunks)), make([]int64, len(chunks))
	for i, c := range chunks {
		batches[i], indexes[i] = text(c.Batch), int64(c.Index)
	}
	return args{"batches": batches, "indexes": indexes}
}

// swept returns segments.ErrSwept in the place of the server's error.
func swept(err error) error {
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == refusedSwept {
		return segments.ErrSwept
	}
	return err
}

// Batches implements [segments.Registry].
func (r Segments) Batches(ctx context.Context) (batches []string, err error) {
	err = r.db.read(ctx, func(s *steps) {
		batches = nil
		s.rows("SELECT DISTINCT batch FROM journals", nil,
			tables.Collect(&batches, tables.ScanScalar[string]))
	})
	if err != nil {
		return nil, fmt.Errorf("list the batches that have journals: %w", err)
	}
	return batches, nil
}

// released counts the ranges that a statement has taken from segments, in its rows taken, and
// queues the segments that have none left.
const released = `counted AS (SELECT segment, count(*) AS n FROM taken GROUP BY segment),
	released AS (UPDATE segments AS g SET ranges = g.ranges - c.n,
		queued = CASE WHEN g.ranges = c.n THEN ` + serverNow + ` END
		FROM counted AS c WHERE g.id = c.segment)`

// Remove implements [segments.Registry].
func (r Segments) Remove(ctx context.Context, batch string) error {
	all := args{"batch": text(batch), "now": r.db.clock()}
	err := r.db.write(ctx, func(s *steps) {
		s.do("SELECT 1 FROM journals WHERE batch = @batch ORDER BY id FOR UPDATE", all)
		s.do(`SELECT 1 FROM segments WHERE id IN (SELECT r.segment FROM journals AS j
			JOIN segment_ranges AS r ON r.journal = j.id WHERE j.batch = @batch)
			ORDER BY id FOR UPDATE`, all)
		s.do(`WITH gone AS (DELETE FROM journals WHERE batch = @batch RETURNING id),
			taken AS (DELETE FROM segment_ranges AS r USING gone WHERE r.journal = gone.id
				RETURNING r.segment),
			`+released+` SELECT 1`, all)
	})
	if err != nil {
		return fmt.Errorf("remove the journals of batch %s: %w", batch, err)
	}
	return nil
}

// replaceQuery moves ranges to another object. Of the ranges that one takes the place of, the first
// becomes it, and the others go.
const replaceQuery = `WITH puts AS (SELECT j.id AS journal, p.* FROM unnest(@batches::text[],
		@indexes::bigint[], @places::bigint[], @lengths::bigint[], @ats::bigint[]) WITH ORDINALITY
		AS p (batch, idx, place, length, at, n)
		JOIN journals AS j ON j.batch = p.batch AND j.idx = p.idx),
	inside AS (SELECT p.n, r.journal, r.at, r.length, r.segment FROM puts AS p
		JOIN segment_ranges AS r ON r.journal = p.journal AND r.at >= p.at
			AND r.at < p.at + p.length AND r.at + r.length <= p.at + p.length),
	good AS (SELECT p.* FROM puts AS p WHERE p.length =
			(SELECT sum(i.length) FROM inside AS i WHERE i.n = p.n)
		AND NOT EXISTS (SELECT 1 FROM inside AS i WHERE i.n = p.n AND i.segment NOT IN
			(SELECT id FROM segments WHERE key = ANY (@old::text[])))),
	taken AS (SELECT i.segment FROM inside AS i JOIN good USING (n)),
	` + released + `,
	added AS (INSERT INTO segments (key, stamp, bytes, ranges)
		SELECT @key, @stamp, @bytes, count(*) FROM good HAVING count(*) > 0 RETURNING id),
	gone AS (DELETE FROM segment_ranges AS r USING good AS p
		WHERE r.journal = p.journal AND r.at > p.at AND r.at < p.at + p.length),
	placed AS (UPDATE segment_ranges AS r
		SET length = p.length, segment = added.id, place = p.place FROM good AS p, added
		WHERE r.journal = p.journal AND r.at = p.at)
	SELECT n FROM good ORDER BY n`

// Replace implements [segments.Registry].
func (r Segments) Replace(
	ctx context.Context, put segments.Replacement,
) (done []segments.Range, err error) {
	places, lengths, ats := []int64{}, []int64{}, []int64{}
	chunks := make([]store.ChunkID, len(put.Ranges))
	for i, p := range put.Ranges {
		chunks[i] = p.Chunk
		places, lengths = append(places, p.Offset), append(lengths, p.Length)
		ats = append(ats, p.At)
	}
	old := make([]string, len(put.Old))
	for i, key := range put.Old {
		old[i] = key.String()
	}
	all := chunkArguments(chunks)
	all["places"], all["lengths"], all["ats"], all["old"] = places, lengths, ats, old
	all["key"], all["stamp"], all["bytes"] = put.Key.String(), int64(put.Key.Stamp), put.Bytes
	all["now"] = r.db.clock()
	err = r.db.write(ctx, func(s *steps) {
		done = nil
		s.admit(put.Key, all)
		s.do("SELECT 1 FROM segments WHERE key = ANY (@old::text[]) ORDER BY id FOR UPDATE", all)
		s.rows(replaceQuery, all, func(row tables.Row) error {
			var n int
			err := row.Scan(&n)
			if err == nil {
				counts := put.Ranges[n-1]
				counts.Key = put.Key
				done = append(done, counts)
			}
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("register segment %v in the place of %d: %w", put.Key,
			len(put.Old), swept(err))
	}
	return done, nil
}

// AdvanceSweep implements [segments.Registry].
func (r Segments) AdvanceSweep(
	ctx context.Context, age time.Duration,
) (through segments.Stamp, err error) {
	err = r.db.write(ctx, func(s *steps) {
		s.lock(lockSweep, "")
		s.row(`UPDATE segment_sweep SET through = greatest(through, `+serverNow+` - @age::bigint)
			RETURNING through`, args{"now": r.db.clock(), "age": age.Microseconds()},
			(*int64)(&through))
	})
	if err != nil {
		return 0, fmt.Errorf("advance the sweep of segments: %w", err)
	}
	return through, nil
}

// Unknown implements [segments.Registry].
func (r Segments) Unknown(
	ctx context.Context, keys []segments.Key,
) (unknown []segments.Key, err error) {
	err = r.db.read(ctx, func(s *steps) {
		unknown = nil
		s.rows(`SELECT key FROM unnest(@keys::text[]) AS asked (key)
			WHERE NOT EXISTS (SELECT 1 FROM segments AS g WHERE g.key = asked.key)`,
			args{"keys": keyNames(keys)}, collectKeys(&unknown))
	})
	if err != nil {
		return nil, fmt.Errorf("find out which of %d segments are registered: %w", len(keys), err)
	}
	return unknown, nil
}

func keyNames(keys []segments.Key) []string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	return names
}

// collectKeys scans rows of one key each.
func collectKeys(keys *[]segments.Key) func(tables.Row) error {
	return func(row tables.Row) error {
		var name string
		if err := row.Scan(&name); err != nil {
			return err
		}
		key, err := parseKey(name)
		*keys = append(*keys, key)
		return err
	}
}

// TakeDeletions implements [segments.Registry].
func (r Segments) TakeDeletions(
	ctx context.Context, wait time.Duration, limit int,
) (due []segments.Key, err error) {
	err = r.db.read(ctx, func(s *steps) {
		due = nil
		s.rows(`SELECT key FROM segments WHERE queued <= `+serverNow+` - @wait::bigint
			AND stamp <= (SELECT through FROM segment_sweep) ORDER BY queued, id LIMIT @limit`,
			args{"now": r.db.clock(), "wait": wait.Microseconds(), "limit": int64(limit)},
			collectKeys(&due))
	})
	if err != nil {
		return nil, fmt.Errorf("read which segments are to be deleted: %w", err)
	}
	return due, nil
}

// FinishDeletions implements [segments.Registry].
func (r Segments) FinishDeletions(ctx context.Context, keys []segments.Key) error {
	err := r.db.write(ctx, func(s *steps) {
		s.do(`DELETE FROM segments WHERE key = ANY (@keys::text[]) AND queued IS NOT NULL
			AND stamp <= (SELECT through FROM segment_sweep)`, args{"keys": keyNames(keys)})
	})
	if err != nil {
		return fmt.Errorf("forget %d deleted segments: %w", len(keys), err)
	}
	return nil
}
