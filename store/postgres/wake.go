package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidefill/tidefill/store"
)

const (
	// wakeChannel is the channel of notifications. Its name holds for one database.
	wakeChannel = "tidefill"
	// notifyEvery is the shortest time between two notifications of a process. Changes meanwhile
	// share one.
	notifyEvery = 20 * time.Millisecond
	// notifyTimeout limits how long a notification may take, since the next one carries as much.
	notifyTimeout = time.Second
	// listenCheck is how long nothing may come before the connection is checked.
	listenCheck = 5 * time.Second
)

var _ store.Waker = (*DB)(nil)

// changed has other processes notified soon.
func (db *DB) changed() {
	select {
	case db.due <- struct{}{}:
	default:
	}
}

// notifyUntil notifies other processes of changes until ctx ends. It does so after the transaction
// of the change and in one of its own: PostgreSQL commits transactions that notify one after the
// other, each with its write to the disk. A notification that is lost is made up for by polling.
func (db *DB) notifyUntil(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-db.due:
		}
		limited, cancel := context.WithTimeout(ctx, notifyTimeout)
		_ = db.read(limited, func(s *steps) {
			s.do("SELECT pg_notify(@channel, @origin)",
				args{"channel": wakeChannel, "origin": db.origin})
		})
		cancel()
		select {
		case <-ctx.Done():
			return
		case <-time.After(notifyEvery):
		}
	}
}

// WakeOnChange implements [store.Waker] by LISTEN on a connection of its own. It does not report
// changes by this process. ErrUnsupported: there is a pooler before the server, which passes on no
// notifications.
func (db *DB) WakeOnChange(ctx context.Context, wake func()) error {
	err := db.listen(ctx, wake)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller has ended it
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		err = translate(ctx, err)
	}
	return fmt.Errorf("listen for changes: %w", err)
}

func (db *DB) listen(ctx context.Context, wake func()) error {
	conn, err := db.direct(ctx)
	if err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTimeout)
		defer cancel()
		_ = conn.Close(limited)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+wakeChannel); err != nil {
		return err
	}
	wake() // of what changed before
	for {
		limited, cancel := context.WithTimeout(ctx, listenCheck)
		n, err := conn.WaitForNotification(limited)
		cancel()
		switch {
		case err == nil && n.Payload != db.origin:
			wake()
		case err == nil:
		case ctx.Err() == nil && pgconn.Timeout(err):
			limited, cancel := context.WithTimeout(ctx, listenCheck)
			err = conn.Ping(limited)
			cancel()
			if err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// direct returns a connection to the server itself, and to the database of the pool.
func (db *DB) direct(ctx context.Context) (_ *pgx.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.timeout)
	defer cancel()
	config := db.listener.ConnConfig.Copy()
	if err := db.listener.BeforeConnect(ctx, config); err != nil {
		return nil, err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = conn.Close(ctx)
		}
	}()
	pooled, err := behindPooler(ctx, conn)
	if err != nil {
		return nil, err
	}
	if pooled {
		return nil, fmt.Errorf("a pooler such as PgBouncer stands before PostgreSQL and passes on "+
			"no notifications; set direct_url to the address of PostgreSQL itself: %w",
			errors.ErrUnsupported)
	}
	var id string
	if err := conn.QueryRow(ctx, "SELECT id FROM cluster").Scan(&id); err != nil {
		return nil, err
	}
	if id != db.cluster {
		return nil, fmt.Errorf("direct_url leads to the database of another installation, %s, "+
			"and url to that of %s: %w", id, db.cluster, errors.ErrUnsupported)
	}
	return conn, nil
}
