package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	opened    closing.List
}

// databaseSettings are those of a server that survives a power cut, with the memory of a small one.
// Without autovacuum all transactions of a database are those of daemons.
var databaseSettings = []string{"fsync = on", "full_page_writes = on", "shared_buffers = '128MB'",
	"max_wal_size = '4GB'", "autovacuum = off", "stats_fetch_consistency = 'none'"}

// benchCluster compares daemons on the cluster store with daemons on the embedded one, which send
// the same lines to the same upstream, and measures what the cluster store asks its servers.
func benchCluster(ctx context.Context, l *environment) (figures []figure, err error) {
	c, err := l.startCluster(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	path, err := l.writeBatchFile("cluster.jsonl", l.sizes.dispatchLines, dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	pair := storePair{cluster: c, path: path,
		lines: l.sizes.dispatchLines * l.sizes.sharedBatches}
	for _, measure := range []func(context.Context) ([]figure, error){pair.compare, c.count,
		c.large, c.starts, c.small} {
		more, err := measure(ctx)
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// starts measures the time from the creation of batches to their first lines.
func (c *cluster) starts(ctx context.Context) ([]figure, error) {
	return startFigures(ctx, c.environment, " on the cluster store", 150, c.settings()...)
}

// small measures many small batches.
func (c *cluster) small(ctx context.Context) ([]figure, error) {
	return smallFigures(ctx, c.environment, " on the cluster store", c.settings()...)
}

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
	records, err := pgx.Connect(ctx, c.metadata.URL("postgres"))
	if err != nil {
		return nil, err
	}
	defer records.Close(ctx)
	if _, err := records.Exec(ctx, "CREATE DATABASE tidefill"); err != nil {
		return nil, fmt.Errorf("create the database: %w", err)
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
	return strings.TrimPrefix(fields[3], "s3_")
}
