package postgres

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

const (
	// attempts is the greatest number of runs of a transaction that deadlocks, fails to serialize,
	// or finds its connection closed.
	attempts = 6
	// firstPause is the mean pause before the second attempt. Each further one is twice as long.
	firstPause = 4 * time.Millisecond
)

// args are the named arguments of a statement.
type args = pgx.NamedArgs

// steps are the statements of one transaction. They are sent together and answered together.
type steps struct{ batch pgx.Batch }

// do adds a statement without a result.
func (s *steps) do(statement string, a args) { s.batch.Queue(statement, a) }

// affect adds a statement and counts the rows that it changes.
func (s *steps) affect(changed *int64, statement string, a args) {
	s.batch.Queue(statement, a).Exec(func(tag pgconn.CommandTag) error {
		*changed = tag.RowsAffected()
		return nil
	})
}

// row adds a query of at most one row. The destinations keep their values if there is none.
func (s *steps) row(statement string, a args, dest ...any) {
	s.batch.Queue(statement, a).QueryRow(func(row pgx.Row) error {
		if err := (plainRow{row}).Scan(dest...); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
}

// rows adds a query. scan is called for every row of its result.
func (s *steps) rows(statement string, a args, scan func(tables.Row) error) {
	s.batch.Queue(statement, a).Query(func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			if err := scan(plainRow{rows}); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// require adds a condition, an SQL expression. If it does not hold, the transaction ends without
// effect, with the error of the code.
func (s *steps) require(code, message, condition string, a args) {
	s.do("SELECT tidefill_require(("+condition+
		"), @require_code::text, @require_message::text)", withRefusal(a, code, message))
}

// change adds a statement that must change a row. If it changes none, the transaction ends without
// effect, with the error of the code.
func (s *steps) change(code, message, statement string, a args) {
	s.do("WITH changed AS ("+statement+` RETURNING 1)
		SELECT tidefill_require(EXISTS (SELECT 1 FROM changed), @require_code::text,
			@require_message::text)`, withRefusal(a, code, message))
}

func withRefusal(a args, code, message string) args {
	all := args{"require_code": code, "require_message": message}
	maps.Copy(all, a)
	return all
}

// write runs the transaction of build. build may run several times and must start anew each time.
func (db *DB) write(ctx context.Context, build func(*steps)) error {
	return db.run(ctx, true, build, again)
}

// writeUnlessDeleted is write for statements that add rows to batches which they have found: if one
// is deleted meanwhile, they are run again.
func (db *DB) writeUnlessDeleted(ctx context.Context, build func(*steps)) error {
	return db.run(ctx, true, build, func(err error) bool {
		return again(err) || deletedMeanwhile(err)
	})
}

// read runs the transaction of build, which changes nothing, and so also after the connection was
// lost. build may run several times and must start anew each time.
func (db *DB) read(ctx context.Context, build func(*steps)) error {
	return db.run(ctx, false, build, func(err error) bool { return again(err) || lost(err) })
}

func (db *DB) run(
	ctx context.Context, write bool, build func(*steps), repeat func(error) bool,
) error {
	began := time.Now()
	err := translate(ctx, db.runAttempts(ctx, build, repeat))
	var unavailable error
	if errors.Is(err, store.ErrUnavailable) {
		unavailable = err
	}
	db.observe(write, time.Since(began), unavailable)
	return err
}

func (db *DB) runAttempts(
	ctx context.Context, build func(*steps), repeat func(error) bool,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := db.attempt(limited, build)
		if err == nil || attempt == attempts || limited.Err() != nil || !repeat(err) {
			return err
		}
		select {
		case <-limited.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause *= 2
	}
}

// attempt sends the statements once, on any connection.
func (db *DB) attempt(ctx context.Context, build func(*steps)) error {
	conn, err := db.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var s steps
	build(&s)
	err = conn.SendBatch(ctx, &s.batch).Close()
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == readOnlyTransaction {
		// The server has become a standby. New connections find the one that accepts writes.
		db.pool.Reset()
	}
	return err
}
