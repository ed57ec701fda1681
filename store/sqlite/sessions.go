package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	codes "modernc.org/sqlite/lib"
)

var errClosed = errors.New("database is closed")

// sessions is a pool. Each session belongs to one caller at a time.
type sessions struct {
	idle   chan *session // its capacity is that of all sessions
	opened int
	once   sync.Once
	closed chan struct{}
}

func newSessions(n int) *sessions {
	return &sessions{idle: make(chan *session, n), closed: make(chan struct{})}
}

func (p *sessions) open(ctx context.Context, pool *sql.DB) error {
	for range cap(p.idle) {
		conn, err := connect(ctx, pool)
		if err != nil {
			return fmt.Errorf("connect: %w", translate(ctx, err))
		}
		p.idle <- &session{conn: conn, stmts: make(map[string]*sql.Stmt)}
		p.opened++
	}
	return nil
}

// connectWait limits the time that Open waits for another process that holds the lock of the file.
const connectWait = 15 * time.Second

// connect opens a connection. The pragmas of a new one wait for their lock no longer than
// busy_timeout, and another process may need longer to migrate the schema.
func connect(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	for start := time.Now(); ; {
		conn, err := pool.Conn(ctx)
		if primaryCode(err) != codes.SQLITE_BUSY || ctx.Err() != nil ||
			time.Since(start) > connectWait {
			return conn, err
		}
	}
}

func (p *sessions) acquire(ctx context.Context) (*session, error) {
	select {
	case <-p.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	default:
	}
	select {
	case s := <-p.idle:
		return s, nil
	case <-p.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *sessions) release(s *session) { p.idle <- s }

func (p *sessions) close() (err error) {
	p.once.Do(func() {
		close(p.closed)
		for range p.opened {
			err = errors.Join(err, (<-p.idle).close())
		}
	})
	return err
}
