package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// Options configures Open.
type Options struct {
	// Progress keeps the progress that Redis does not take while it is away. Nil: the memory of
	// this process.
	Progress   store.ProgressBoard
	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// DB is a connection to Redis.
type DB struct {
	cfg      Config
	client   redis.UniversalClient
	breaker  *breaker
	log      *slog.Logger
	progress store.ProgressBoard
	windows  live.Memory // while Redis is away
	events   *events
	metrics  *metrics
}

var (
	_ live.Medium         = (*DB)(nil)
	_ store.ProgressBoard = (*DB)(nil)
)

// silent drops what the client library logs: each call reports its own error.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// Open connects. A server that does not answer is no error, because nothing depends on it. One that
// refuses the password is.
func Open(ctx context.Context, cfg Config, o Options) (*DB, error) {
	at, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open Redis: its URL: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = live.NewBoard()
	}
	db := &DB{cfg: cfg, progress: o.Progress, log: o.Logger.With("component", "redis")}
	if db.metrics, err = newMetrics(o.Registerer); err != nil {
		return nil, fmt.Errorf("open Redis: register metrics: %w", err)
	}
	if db.client, err = connect(cfg, at, 0); err != nil {
		return nil, fmt.Errorf("open Redis: %w", err)
	}
	db.breaker = newBreaker(db.ping, db.log, db.metrics)
	if err := db.ping(ctx); err != nil {
		if refused(err) {
			db.breaker.close()
			return nil, errors.Join(fmt.Errorf("open Redis at %s: %w; set url, password_env and "+
				"password_file to a user that may use keys and channels that begin with %q",
				strings.Join(at.hosts, ","), err, cfg.Prefix+":"), db.client.Close())
		}
		db.breaker.failed(err)
	}
	db.events = newEvents(db, rand.Text())
	return db, nil
}

// Client returns a client with at most so many connections, for those who use Redis for more than
// what this package keeps there. It connects with the first call.
func Client(cfg Config, connections int) (redis.UniversalClient, error) {
	at, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open Redis: its URL: %w", err)
	}
	client, err := connect(cfg, at, connections)
	if err != nil {
		return nil, fmt.Errorf("open Redis: %w", err)
	}
	return client, nil
}

// connect returns a client with at most so many connections; 0: the library's default. It connects
// with the first call.
func connect(cfg Config, at address, connections int) (redis.UniversalClient, error) {
	encryption, err := cfg.encryption(at)
	if err != nil {
		return nil, err
	}
	if _, err := cfg.password(); err != nil {
		return nil, err
	}
	o := &redis.UniversalOptions{
		Addrs: at.hosts, DB: at.db, MasterName: at.name, IsClusterMode: at.mode == "cluster",
		TLSConfig: encryption, ClientName: "tidefill",
		CredentialsProviderContext: func(context.Context) (string, string, error) {
			password, err := cfg.password()
			return at.user, password, err
		},
		// A connection takes two more round trips, and TLS.
		DialTimeout: 4 * cfg.Timeout, ReadTimeout: cfg.Timeout, WriteTimeout: cfg.Timeout,
		PoolTimeout: cfg.Timeout, ContextTimeoutEnabled: true, PoolSize: connections,
		MaxRetries: -1, // the breaker decides
		// what an engine other than Redis may refuse
		DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled},
	}
	switch {
	case at.mode == "cluster":
		cluster := o.Cluster()
		cluster.MaxRedirects = 3
		return redis.NewClusterClient(cluster), nil
	case at.mode == "sentinel":
		return redis.NewFailoverClient(o.Failover()), nil
	}
	return redis.NewClient(o.Simple()), nil
}

// refused reports whether the server refuses this client: waiting does not help.
func refused(err error) bool {
	for _, code := range []string{"NOAUTH", "WRONGPASS", "NOPERM", "ERR AUTH",
		"ERR Client sent AUTH"} {
		if strings.Contains(err.Error(), code) {
			return true
		}
	}
	return false
}

// ping asks whether the server takes calls. It writes, because a replica does not.
func (db *DB) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*db.cfg.Timeout)
	defer cancel()
	return db.client.Set(ctx, db.key("ping", ""), "1", time.Second).Err()
}

// key returns the key of an object. What stands in braces decides the node of a cluster.
func (db *DB) key(kind, of string) string {
	if of == "" {
		return db.cfg.Prefix + ":" + kind
	}
	return db.cfg.Prefix + ":" + kind + ":{" + of + "}"
}

// call calls the server unless it is away.
func (db *DB) call(ctx context.Context, do func(ctx context.Context) error) error {
	if db.breaker.open() {
		return fmt.Errorf("no answer from Redis: %w", store.ErrUnavailable)
	}
	limited, cancel := context.WithTimeout(ctx, db.cfg.Timeout)
	defer cancel()
	began := time.Now()
	err := do(limited)
	db.metrics.calls.Observe(time.Since(began).Seconds())
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if ctx.Err() != nil { // the caller has gone
		return ctx.Err()
	}
	db.breaker.failed(err)
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// Away returns why Redis is not used at present; nil: it is.
func (db *DB) Away() error { return db.breaker.why() }

// Close ends the connections.
func (db *DB) Close() error {
	db.events.close()
	db.breaker.close()
	return db.client.Close()
}
