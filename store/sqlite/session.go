package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	codes "modernc.org/sqlite/lib"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// session is a connection with its prepared statements. All statements are constants of this
// package, so their number is bounded.
type session struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// write runs f in a transaction, which is committed if f returns nil and else rolled back. It is
// for writes that do not let the database grow for good: if the disk is full, it frees space and
// runs f once more.
func (db *DB) write(ctx context.Context, f func(*session) error) error {
	err := db.attempt(ctx, f)
	if !maybeFull(err) || !db.freeSpace(ctx) {
		return err
	}
	return db.attempt(ctx, f)
}

// add is write for writes that let the database grow. It is refused while there is no free space
// except the reserve.
func (db *DB) add(ctx context.Context, f func(*session) error) error {
	if db.space != nil {
		if err := db.space.CheckSpace(); err != nil {
			return err
		}
	}
	return db.attempt(ctx, f)
}

// attempt is write without the reserve. A commit counts only if the file is still at its path.
func (db *DB) attempt(ctx context.Context, f func(*session) error) error {
	if err := db.files.check(); err != nil {
		return err
	}
	if err := db.transact(ctx, db.writer, f); err != nil {
		return err
	}
	return db.files.check()
}

// snapshot runs f in a transaction that sees one state of the database throughout.
func (db *DB) snapshot(ctx context.Context, f func(*session) error) error {
	return db.transact(ctx, db.readers, f)
}

// read runs f, which reads with a single statement.
func (db *DB) read(ctx context.Context, f func(*session) error) error {
	s, err := db.readers.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.readers.release(s)
	return translate(ctx, f(s))
}

func (db *DB) transact(ctx context.Context, from *sessions, f func(*session) error) error {
	start := time.Now()
	s, err := from.acquire(ctx)
	if err != nil {
		return err
	}
	defer from.release(s)

	// Neither COMMIT nor ROLLBACK may be interrupted: the next caller must get the session outside
	// of a transaction.
	uncancelled := context.WithoutCancel(ctx)
	done := false
	defer func() {
		if !done {
			// The error is "no transaction is active" if SQLite has rolled back already.
			_ = s.exec(uncancelled, "ROLLBACK")
		}
	}()
	if err := db.begin(ctx, s, from == db.writer, start.Add(db.lockWait)); err != nil {
		return translate(ctx, err)
	}
	if err := f(s); err != nil {
		return translate(ctx, err)
	}
	if err := s.exec(uncancelled, "COMMIT"); err != nil {
		return translate(uncancelled, err)
	}
	done = true
	return nil
}

// errLocked means that a write waited too long for another process that writes, or that was
// suspended while it did.
var errLocked = fmt.Errorf("%w: another process holds the lock of the database",
	store.ErrUnavailable)

// begin starts a transaction. A write waits for other processes until the given time, in steps of
// busy_timeout, so that it returns when the context ends. Writes that were queued behind one that
// waited too long do not wait again.
func (db *DB) begin(ctx context.Context, s *session, write bool, until time.Time) error {
	if !write {
		return s.exec(ctx, "BEGIN")
	}
	if db.locked.Load() && time.Now().After(until) {
		return errLocked
	}
	for {
		err := s.exec(ctx, "BEGIN IMMEDIATE")
		switch {
		case err == nil:
			db.locked.Store(false)
			return nil
		case primaryCode(err) != codes.SQLITE_BUSY || ctx.Err() != nil:
			return err
		case time.Now().After(until):
			db.locked.Store(true)
			return errLocked
		}
	}
}

func (s *session) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := s.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	s.stmts[query] = stmt
	return stmt, nil
}

func (s *session) exec(ctx context.Context, query string, args ...any) error {
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return err
	}
	_, err = stmt.ExecContext(ctx, args...)
	return err
}

// affect is exec that returns the number of changed rows.
func (s *session) affect(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads the one row of a query. [store.ErrNotFound]: it has none.
func (s *session) row(ctx context.Context, query string, args []any, dest ...any) error {
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return err
	}
	err = stmt.QueryRowContext(ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return store.ErrNotFound
	}
	return err
}

// rows calls scan for every row of a query.
func (s *session) rows(
	ctx context.Context, query string, args []any, scan func(tables.Row) error,
) error {
	stmt, err := s.prepare(ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// script runs several statements without preparing them.
func (s *session) script(ctx context.Context, statements string) error {
	_, err := s.conn.ExecContext(ctx, statements)
	return err
}

func (s *session) close() (err error) {
	for _, stmt := range s.stmts {
		err = errors.Join(err, stmt.Close())
	}
	return errors.Join(err, s.conn.Close())
}
