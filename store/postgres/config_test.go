package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

func TestConfigReportsEveryFault(t *testing.T) {
	good := postgres.DefaultConfig()
	good.URL = "postgres://me@db/x?sslmode=require"
	if err := good.Validate(); err != nil {
		t.Errorf("a good configuration: %v", err)
	}
	for _, test := range []struct {
		name   string
		change func(*postgres.Config)
		want   string
	}{
		{"no address", func(c *postgres.Config) { c.URL = "" }, "url: is empty"},
		{"another address", func(c *postgres.Config) { c.URL = "https://me@db/x" },
			"url: is not an address of PostgreSQL"},
		{"unreadable address", func(c *postgres.Config) { c.URL = "postgres://me:p4ss@%zz/x" },
			"url: is not an address of PostgreSQL"},
		{"password", func(c *postgres.Config) { c.URL = "postgres://me:p4ss@db/x" },
			"url: has a password"},
		{"password as a parameter",
			func(c *postgres.Config) { c.URL = "postgres://me@db/x?password=p4ss" },
			"url: has the parameter password"},
		{"parameter", func(c *postgres.Config) { c.URL = "postgres://me@db/x?sslmode=p4ss" },
			"url: can't be used"},
		{"two passwords", func(c *postgres.Config) { c.PasswordEnv, c.PasswordFile = "A", "b" },
			"password_file: is \"b\""},
		{"one connection", func(c *postgres.Config) { c.MaxConnections = 1 },
			"max_connections: is 1"},
		{"a direct address", func(c *postgres.Config) { c.DirectURL = "https://me@db/x" },
			"direct_url: is not an address of PostgreSQL"},
		{"no patience", func(c *postgres.Config) { c.Timeout = time.Millisecond },
			"tuning.timeout: is 1ms"},
		{"statements", func(c *postgres.Config) { c.Statements = "some" },
			"tuning.statements: is \"some\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := good
			test.change(&c)
			err := c.Validate()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "p4ss") && test.name != "parameter" {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestPasswords(t *testing.T) {
	s := testpostgres.Shared(t)
	c := config(t, s.URL(s.NewDatabase(t)))
	openOnce := func() error {
		db, err := postgres.Open(t.Context(), c, postgres.Options{})
		if err == nil {
			err = db.Close()
		}
		return err
	}
	must(t, openOnce())
	file := filepath.Join(t.TempDir(), "password")
	c.PasswordEnv, c.PasswordFile = "", file
	if err := openOnce(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open without the file: %v", err)
	}
	must(t, os.WriteFile(file, []byte("wr0ng\n"), 0o600))
	err := openOnce()
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "password_file") ||
		strings.Contains(err.Error(), "wr0ng") {
		t.Errorf("open with a wrong password: %v", err)
	}
	must(t, os.WriteFile(file, []byte(testpostgres.Password+"\n"), 0o600))
	must(t, openOnce())
	c.PasswordEnv, c.PasswordFile = "TIDEFILL_TEST_UNSET", ""
	if err := openOnce(); err == nil || !strings.Contains(err.Error(), "TIDEFILL_TEST_UNSET") {
		t.Errorf("open with an empty variable: %v", err)
	}
}

func TestRefusedDatabases(t *testing.T) {
	s := testpostgres.Shared(t)
	refused := func(address, want string) {
		t.Helper()
		db, err := postgres.Open(t.Context(), config(t, address), postgres.Options{})
		if err == nil {
			db.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open %s: got %v, want %q", address, err, want)
		}
	}
	refused(s.URL("missing"), "there is no such database")
	s.Exec(t, "postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
	refused(s.URL("latin"), "ENCODING 'UTF8'")

	newer := s.NewDatabase(t)
	open(t, s.URL(newer), postgres.Options{})
	s.Exec(t, newer, "UPDATE schema_version SET version = version + 1")
	refused(s.URL(newer), "run the release that wrote it, or a later one")
	if _, _, err := postgres.Migrate(t.Context(), config(t, s.URL(newer)), false); err == nil {
		t.Error("migrated a newer schema")
	}
}

// TestMigrationsRunOnce opens a new database in several processes at the same time.
func TestMigrationsRunOnce(t *testing.T) {
	s := testpostgres.Shared(t)
	c := config(t, s.URL(s.NewDatabase(t)))
	ids := make(chan string, 4)
	for range cap(ids) {
		go func() {
			db, err := postgres.Open(context.Background(), c, postgres.Options{})
			if err != nil {
				ids <- err.Error()
				return
			}
			defer db.Close()
			ids <- db.ClusterID()
		}()
	}
	first := <-ids
	if len(first) != 36 {
		t.Errorf("got %q, want a cluster id", first)
	}
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("got %q and %q, want one cluster id", first, id)
		}
	}
	from, to, err := postgres.Migrate(t.Context(), c, false)
	if err != nil || from != postgres.Migrations || to != postgres.Migrations {
		t.Errorf("migrate again: got %d to %d, %v, want %d", from, to, err, postgres.Migrations)
	}
	c = config(t, s.URL(s.NewDatabase(t)))
	from, to, err = postgres.Migrate(t.Context(), c, false)
	if err != nil || from != 0 || to != postgres.Migrations {
		t.Errorf("migrate a new database: got %d to %d, %v", from, to, err)
	}
}

func TestClusterIDs(t *testing.T) {
	s := testpostgres.Shared(t)
	address := s.URL(s.NewDatabase(t))
	here, there := open(t, address, postgres.Options{}), open(t, address, postgres.Options{})
	if here.ClusterID() != there.ClusterID() {
		t.Errorf("one cluster has the ids %s and %s", here.ClusterID(), there.ClusterID())
	}
	if other := openNew(t, nil); other.ClusterID() == here.ClusterID() {
		t.Errorf("two clusters have the id %s", other.ClusterID())
	}
	// The test server is on this machine.
	if off, err := here.ClockOffset(t.Context()); err != nil || off.Abs() > time.Second {
		t.Errorf("the clock of the server is off by %v, %v", off, err)
	}
}

// A role that owns only its database suffices.
func TestPlainRole(t *testing.T) {
	s := testpostgres.Shared(t)
	s.Exec(t, "postgres", "CREATE ROLE plain LOGIN PASSWORD '"+testpostgres.Password+"'")
	s.Exec(t, "postgres", "CREATE DATABASE plain OWNER plain")
	c := config(t, s.URL("plain"))
	c.URL = strings.Replace(c.URL, testpostgres.User+"@", "plain@", 1)
	db, err := postgres.Open(t.Context(), c, postgres.Options{})
	must(t, err)
	defer db.Close()
	must(t, db.CreateBatch(t.Context(), batch("b")))
	ids, _, err := db.ChangedBatches(t.Context(), "", 1)
	if err != nil || len(ids) != 1 {
		t.Errorf("got changes %v, %v", ids, err)
	}
}

func TestPgBouncerIsFound(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	bouncer := testpostgres.StartBouncer(t, s)
	if !postgres.KeepsStatements(open(t, s.URL(database), postgres.Options{})) {
		t.Error("connections to the server do not keep statements")
	}
	if postgres.KeepsStatements(open(t, bouncer.URL(database), postgres.Options{})) {
		t.Error("connections to PgBouncer keep statements")
	}
	// Statements that are kept nonetheless get lost. The error says what to do.
	c := config(t, bouncer.URL(database))
	c.Statements = "prepared"
	db, err := postgres.Open(t.Context(), c, postgres.Options{})
	if err == nil {
		defer db.Close()
		for i := 0; err == nil && i < 50; i++ {
			failed := make(chan error, 8)
			for range cap(failed) {
				go func() {
					_, err := db.Newest(t.Context())
					failed <- err
				}()
			}
			for range cap(failed) {
				err = errors.Join(err, <-failed)
			}
		}
	}
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(),
		"tuning.statements: unnamed") {
		t.Errorf("with kept statements: got %v", err)
	}
}

func TestTLS(t *testing.T) {
	s := testpostgres.Start(t)
	dir := t.TempDir()
	authority, other := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	ca, strange := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "strange.pem")
	authority.WritePair(cert, key)
	authority.WriteCA(ca)
	other.WriteCA(strange)
	s.ServeTLS(t, cert, key)
	database := s.NewDatabase(t)
	address := strings.Replace(s.URL(database), "sslmode=disable",
		"sslmode=verify-full&sslrootcert=", 1)
	// The server reads its configuration in its own time.
	var db *postgres.DB
	var err error
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		db, err = postgres.Open(t.Context(), config(t, address+ca), postgres.Options{})
		if err == nil || time.Now().After(deadline) {
			break
		}
	}
	must(t, err)
	defer db.Close()
	must(t, db.Ping(t.Context()))
	if _, err := postgres.Open(t.Context(), config(t, address+strange),
		postgres.Options{}); !errors.Is(err, store.ErrUnavailable) ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("open with another authority: %v", err)
	}

	// The server and the file get new certificates; new connections use them.
	other.WritePair(cert, key)
	s.ServeTLS(t, cert, key)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		s.Cut(t, database)
		if err = db.Ping(t.Context()); err != nil || time.Now().After(deadline) {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Fatalf("connect to a server with a new certificate: %v", err)
	}
	other.WriteCA(ca)
	must(t, db.Ping(t.Context()))
}

// A full disk refuses posts. This process returns them all the same, since users ask why nothing
// moves.
func TestPostsOfAFullDisk(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	db, ctx := open(t, s.URL(database), postgres.Options{}), t.Context()
	must(t, db.CreateBatch(ctx, batch("b")))
	o, err := db.Register(ctx, "n", time.Hour)
	must(t, err)
	s.Exec(t, database, `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`)
	s.Exec(t, database, `CREATE TRIGGER full_disk BEFORE INSERT ON progress
		FOR EACH ROW EXECUTE FUNCTION full_disk()`)
	post := store.ProgressPost{Progress: store.Progress{Waiting: "disk_full",
		UpdatedAt: time.Now()}}
	err = db.PostProgress(ctx, o, map[string]store.ProgressPost{"b": post})
	if !errors.Is(err, store.ErrNoSpace) {
		t.Errorf("post: got %v, want %v", err, store.ErrNoSpace)
	}
	progress, err := store.ReadProgress(ctx, db, db, []string{"b"}, nil)
	if err != nil || progress["b"].Waiting != "disk_full" {
		t.Errorf("progress is %+v, %v", progress["b"], err)
	}
	s.Exec(t, database, "DROP TRIGGER full_disk ON progress")
	post.Waiting = ""
	must(t, db.PostProgress(ctx, o, map[string]store.ProgressPost{"b": post}))
	progress, err = store.ReadProgress(ctx, db, db, []string{"b"}, nil)
	if err != nil || progress["b"].Waiting != "" {
		t.Errorf("progress is %+v, %v after a post", progress["b"], err)
	}
}

func TestCallsAreObserved(t *testing.T) {
	s := testpostgres.Shared(t)
	var writes, failed atomic.Int32
	db := open(t, s.URL(s.NewDatabase(t)), postgres.Options{
		Observe: func(write bool, _ time.Duration, err error) {
			if write {
				writes.Add(1)
			}
			if err != nil {
				failed.Add(1)
			}
		}})
	writes.Store(0)
	must(t, db.CreateBatch(t.Context(), batch("b")))
	if err := db.CreateBatch(t.Context(), batch("b")); !errors.Is(err, store.ErrExists) {
		t.Errorf("create again: %v", err)
	}
	if writes.Load() != 2 || failed.Load() != 0 {
		t.Errorf("observed %d writes and %d failures, want 2 and 0", writes.Load(), failed.Load())
	}
	if stats := db.PoolStats(); stats.Most != 10 || stats.Open < 1 {
		t.Errorf("the connections are %+v", stats)
	}
}

// A newer process may change columns while this one has prepared statements that return them.
func TestPreparedStatementsFollowMigrations(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	db, ctx := open(t, s.URL(database), postgres.Options{}), t.Context()
	must(t, db.CreateUpload(ctx, store.Upload{ID: "u", Tenant: "t", State: store.UploadPending}))
	for i := range 8 {
		_, err := db.Upload(ctx, "t", "u")
		must(t, err)
		if i == 5 {
			s.Exec(t, database, "DROP INDEX uploads_pending")
			s.Exec(t, database, "ALTER TABLE uploads ALTER COLUMN state TYPE varchar")
		}
	}
}

// Connections show the node, unless the address has a name for them.
func TestConnectionsShowTheNode(t *testing.T) {
	s := testpostgres.Shared(t)
	address := s.URL(s.NewDatabase(t))
	db := open(t, address, postgres.Options{Node: "n1"})
	if name := postgres.ApplicationName(t, db); name != "tidefill n1" {
		t.Errorf("got the name %q, want the node in it", name)
	}
	named := open(t, address+"&application_name=mine", postgres.Options{Node: "n1"})
	if name := postgres.ApplicationName(t, named); name != "mine" {
		t.Errorf("got the name %q, want that of the address", name)
	}
}
