package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTimeout limits one attempt to connect to one host.
	connectTimeout = 5 * time.Second
	// checkIdle is the time for which a connection may be idle and still be used without a check.
	checkIdle = 10 * time.Second
	// A connection is replaced after about this time, so that load spreads again after a failover.
	lifetime = 30 * time.Minute
	// idleTime is the time after which an unused connection is closed.
	idleTime = 5 * time.Minute
	// largestPassword limits the size of a password, in bytes.
	largestPassword = 64 << 10
)

// sessionSettings make the server end what a client left behind that has vanished: connections
// whose machine is gone, and transactions that nobody continues. PgBouncer's connections to the
// server do not get them, since they belong to all its clients; see docs/postgres.md.
const sessionSettings = `SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
	SET tcp_keepalives_count = 3; SET client_connection_check_interval = '5s';
	SET idle_in_transaction_session_timeout = '15s'`

// poolConfig returns the configuration of the pool.
func poolConfig(c Config, node string) (*pgxpool.Config, error) {
	pool, err := pgxpool.ParseConfig(withWritable(c.URL))
	if err != nil {
		return nil, errors.New("url: can't be used: " + parseFault(err))
	}
	pool.MaxConns = int32(min(c.MaxConnections, 10_000))
	pool.MinConns = 0
	pool.MaxConnLifetime, pool.MaxConnLifetimeJitter = lifetime, lifetime/5
	pool.MaxConnIdleTime = idleTime
	// A check is a transaction too.
	pool.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool {
		return p.IdleDuration > checkIdle
	}
	pool.PingTimeout = min(c.Timeout, connectTimeout)
	if pool.ConnConfig.ConnectTimeout == 0 {
		pool.ConnConfig.ConnectTimeout = min(c.Timeout, connectTimeout)
	}
	if pool.ConnConfig.RuntimeParams["application_name"] == "" {
		pool.ConnConfig.RuntimeParams["application_name"] = strings.TrimSpace("tidefill " + node)
	}
	pool.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error {
		renewCertificates(pool.ConnString(), conn)
		if c.PasswordEnv == "" && c.PasswordFile == "" {
			return nil
		}
		password, err := readPassword(c)
		conn.Password = password
		if err != nil {
			return fmt.Errorf("%w: %w", errPassword, err)
		}
		return nil
	}
	pool.AfterConnect = prepareSession
	return pool, nil
}

// withWritable adds to the address that the host must accept writes, unless it says which one. So
// a standby is passed over until it is promoted.
func withWritable(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Query().Has("target_session_attrs") {
		return address
	}
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + "target_session_attrs=read-write"
}

// prepareSession configures a new session that belongs to this connection alone.
func prepareSession(ctx context.Context, conn *pgx.Conn) error {
	if pooled, err := behindPooler(ctx, conn); err != nil || pooled {
		return err
	}
	_, err := conn.Exec(ctx, sessionSettings)
	return err
}

// behindPooler reports whether something between the client and the server shares sessions among
// its clients, as PgBouncer does. Such a program shows the client another process id than that of
// the session.
func behindPooler(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()::bigint", pgx.QueryExecModeExec).Scan(&pid)
	return pid != conn.PgConn().PID(), err
}

// execMode returns how statements are sent.
func execMode(ctx context.Context, c Config, pool *pgxpool.Config) (pgx.QueryExecMode, error) {
	switch c.Statements {
	case statementsPrepared:
		return pgx.QueryExecModeCacheStatement, nil
	case statementsUnnamed:
		return pgx.QueryExecModeExec, nil
	}
	config := pool.ConnConfig.Copy()
	if err := pool.BeforeConnect(ctx, config); err != nil {
		return 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	pooled, err := behindPooler(ctx, conn)
	if pooled {
		return pgx.QueryExecModeExec, err
	}
	return pgx.QueryExecModeCacheStatement, err
}

// errPassword means that there is no password where the configuration says.
var errPassword = errors.New("read the password")

// readPassword reads the password from the environment or from its file. Errors never contain it.
func readPassword(c Config) (string, error) {
	if c.PasswordEnv != "" {
		password := os.Getenv(c.PasswordEnv)
		if password == "" {
			return "", fmt.Errorf("password_env: the environment variable %s is empty; set it",
				c.PasswordEnv)
		}
		return password, nil
	}
	f, err := os.Open(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("password_file: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, largestPassword+1))
	password := strings.TrimRight(string(content), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("password_file: %w", err)
	case password == "":
		return "", fmt.Errorf("password_file: %s is empty; write the password into it",
			c.PasswordFile)
	case len(password) > largestPassword:
		return "", fmt.Errorf("password_file: %s has more than %d bytes, which no password has",
			c.PasswordFile, largestPassword)
	}
	return password, nil
}
