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

// sessions lends sessions to one caller at a time each.
type sessions struct {
	idle   chan *session // capacity: all of them
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

// connectWait is how long Open waits for another process that holds the lock of the file.
const connectWait = 15 * time.Second

// connect opens a connection. The pragmas of a new one wait for their lock no longer than
// busy_timeout, which another process that is bringing the schema up to date may outlast.
func connect(ctx context.Context, pool *sql.DB) (*sql.Conn, error) {
	for start := time.Now(); ; {
		conn, err := pool.Conn(ctx)
		if primaryCode(err) != codes.SQLITE_BUSY || ctx.Err() != nil ||
			time.Since(start) > connectWait {
			return conn, err
		}
	}
}

func (p *sessions) take(ctx context.Context) (*session, error) {
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

func (p *sessions) give(s *session) { p.idle <- s }

func (p *sessions) close() (err error) {
	p.once.Do(func() {
		close(p.closed)
		for range p.opened {
			err = errors.Join(err, (<-p.idle).close())
		}
	})
	return err
}
