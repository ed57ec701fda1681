package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidefill/tidefill/internal/closing"
	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// cluster is a PostgreSQL and an object storage that keep what they have on disk, as the embedded
// store does.
type cluster struct {
	*environment
	database  string // its name
	metadata  *postgres.Server
	objects   *s3.Server
	accessLog string // of the object storage
	secrets   string // directory
	records   *pgx.Conn
	opened    closing.List
}

// databaseSettings are those of a server that survives a power cut, with the memory of a small one.
var databaseSettings = []string{"fsync = on", "full_page_writes = on", "shared_buffers = '128MB'",
	"max_wal_size = '4GB'", "track_functions = 'none'",
	"shared_preload_libraries = 'pg_stat_statements'", "stats_fetch_consistency = 'none'"}

// startCluster starts the servers, with an empty database and an empty bucket.
func (l *environment) startCluster(ctx context.Context) (_ *cluster, err error) {
	c := &cluster{environment: l, database: "tidefill"}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.opened.Close())
		}
	}()
	dir, err := l.newDir("cluster")
	if err != nil {
		return nil, err
	}
	var end func() error
	if c.metadata, end, err = postgres.Run(databaseSettings...); err != nil {
		return nil, err
	}
	c.opened.Add("PostgreSQL", end)
	c.accessLog = filepath.Join(dir, "access.log")
	objects, kill, err := s3.Run(dir, c.accessLog)
	if err != nil {
		return nil, err
	}
	c.objects = objects
	c.opened.Add("versitygw", func() error { kill(); return nil })
	c.secrets = dir
	for name, secret := range map[string]string{"password": postgres.Password,
		"access": s3.AccessKey, "secret": s3.SecretKey} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	if c.records, err = pgx.Connect(ctx, c.metadata.URL("postgres")); err != nil {
		return nil, err
	}
	c.opened.Add("connection", func() error { return c.records.Close(context.Background()) })
	for _, statement := range []string{"CREATE DATABASE tidefill",
		"CREATE EXTENSION pg_stat_statements"} {
		if _, err := c.records.Exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return c, nil
}

func (c *cluster) close() {
	if err := c.opened.Close(); err != nil {
		c.logf("end the servers of the cluster: %v", err)
	}
}

// settings returns those of a daemon of the cluster.
func (c *cluster) settings() []string {
	secret := func(name string) string { return filepath.Join(c.secrets, name) }
	return []string{
		"store.backend=cluster",
		fmt.Sprintf("store.cluster.metadata.url=postgres://%s@127.0.0.1:%d/%s?sslmode=disable",
			postgres.User, c.metadata.Port, c.database),
		"store.cluster.metadata.password_file=" + secret("password"),
		"store.cluster.objects.endpoint=" + c.objects.URL,
		"store.cluster.objects.bucket=" + s3.Bucket, "store.cluster.objects.path_style=true",
		"store.cluster.objects.access_key_file=" + secret("access"),
		"store.cluster.objects.secret_key_file=" + secret("secret"),
	}
}

// transactions returns how many transactions of the daemons have committed. A server notes those of
// a connection within a second.
func (c *cluster) transactions(ctx context.Context) (n int64, err error) {
	err = c.records.QueryRow(ctx, "SELECT xact_commit FROM pg_stat_database WHERE datname = $1",
		c.database).Scan(&n)
	return n, err
}

// logStatements reports which statements were run most since the last call.
func (c *cluster) logStatements(ctx context.Context, span time.Duration) error {
	rows, err := c.records.Query(ctx, `SELECT calls, mean_exec_time,
			left(regexp_replace(query, '\s+', ' ', 'g'), 130)
		FROM pg_stat_statements AS s JOIN pg_database AS d ON d.oid = s.dbid
		WHERE d.datname = $1 ORDER BY calls DESC LIMIT 60`, c.database)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var calls int64
		var mean float64
		var query string
		if err := rows.Scan(&calls, &mean, &query); err != nil {
			return err
		}
		c.logf("  %5d %6.1f/s %7.3f ms  %s", calls, float64(calls)/span.Seconds(), mean, query)
	}
	return rows.Err()
}

// requests counts the requests to the bucket so far, by operation.
func (c *cluster) requests() (map[string]int, error) {
	f, err := os.Open(c.accessLog)
	if errors.Is(err, os.ErrNotExist) {
		return map[string]int{}, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	counts := map[string]int{}
	rows := bufio.NewScanner(f)
	rows.Buffer(nil, 1<<20)
	for rows.Scan() {
		counts[operation(rows.Text())]++
	}
	return counts, rows.Err()
}

// operation returns what a row of the access log, in the format of Amazon S3, says was asked for,
// such as REST.PUT.OBJECT.
func operation(row string) string {
	_, row, _ = strings.Cut(row, `] `) // owner, bucket and time come before
	fields := strings.Fields(row)
	if len(fields) < 4 {
		return "unknown"
	}
	return fields[3]
}
