//go:build unix

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tidefill/tidefill/internal/testservers"
)

const (
	// User is the superuser of every server, Password its password.
	User     = "tidefill"
	Password = "secret word"
)

// Server is a running PostgreSQL server.
type Server struct {
	Port int

	programs  string // their directory
	directory string // holds the data, and can be read by the server's user
	process   *testservers.Process
	log       testservers.Log
	databases atomic.Int64
}

// Start starts a server that ends with the test. The settings, such as "max_connections = 20", are
// added to its configuration.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s, err := start(settings)
	if err != nil {
		testservers.Fail(t, fmt.Errorf("start PostgreSQL: %w", err))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the log of PostgreSQL:\n%s", s.process.Log.Tail())
		}
		if err := s.end(); err != nil {
			t.Errorf("end PostgreSQL: %v", err)
		}
	})
	return s
}

// Run starts a server for a program that is not a test. It ends with end, or with the program.
func Run(settings ...string) (s *Server, end func() error, err error) {
	if s, err = start(settings); err != nil {
		return nil, nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	return s, s.end, nil
}

func start(settings []string) (_ *Server, err error) {
	s := &Server{}
	if s.programs, err = programs(); err != nil {
		return nil, err
	}
	if s.directory, err = newDirectory(); err != nil {
		return nil, err
	}
	if err := s.initialize(settings); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.directory))
	}
	if err := s.run(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.directory))
	}
	return s, nil
}

// initialize creates the data directory.
func (s *Server) initialize(settings []string) error {
	password := filepath.Join(s.directory, "password")
	if err := os.WriteFile(password, []byte(Password), 0o644); err != nil {
		return err
	}
	err := s.command("initdb", "--pgdata", s.data(), "--username", User, "--pwfile", password,
		"--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-sync")
	if err != nil {
		return err
	}
	if s.Port, err = freePort(); err != nil {
		return err
	}
	lines := append([]string{
		"listen_addresses = '127.0.0.1'",
		fmt.Sprintf("port = %d", s.Port),
		"unix_socket_directories = ''",
		"fsync = off",
		"full_page_writes = off",
		"shared_buffers = '32MB'",
		"max_connections = 300",
		"max_wal_senders = 4",
		"jit = off",
		"log_min_messages = 'warning'",
		"log_line_prefix = '%m [%p] '",
	}, settings...)
	return appendTo(filepath.Join(s.data(), "postgresql.conf"), lines)
}

func appendTo(path string, lines []string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	return errors.Join(err, f.Close())
}

func (s *Server) data() string { return filepath.Join(s.directory, "data") }

// command runs a program of PostgreSQL to its end.
func (s *Server) command(name string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.programs, name), args...)
	cmd.Dir = s.directory
	cmd.Env = append(os.Environ(), "PGPASSWORD="+Password)
	cmd.SysProcAttr = unprivileged()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, bytes.TrimSpace(out))
	}
	return nil
}

// run starts the server in its data directory and waits until it answers.
func (s *Server) run() (err error) {
	s.process, err = testservers.Program{Path: filepath.Join(s.programs, "postgres"),
		Args: []string{"-D", s.data()}, Dir: s.directory, User: unprivileged().Credential,
		End: syscall.SIGQUIT, Log: &s.log,
	}.Start(func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	return err
}

// end kills the server and removes its files.
func (s *Server) end() error {
	return errors.Join(s.process.Stop(), os.RemoveAll(s.directory))
}

// URL returns the address of a database with user and password.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", User,
		strings.ReplaceAll(Password, " ", "%20"), s.Port, database)
}

// NewDatabase creates an empty database and returns its name.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("db%d", s.databases.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return name
}

// Exec runs statements in a database, on a connection of its own.
func (s *Server) Exec(t testing.TB, database, statements string, args ...any) {
	t.Helper()
	// The context of a test has ended in its cleanups.
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statements, args...); err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
}

// Cut ends all other connections to a database, as a failing network or an operator does.
func (s *Server) Cut(t testing.TB, database string) {
	t.Helper()
	s.Exec(t, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
		"WHERE datname = $1", database)
}

// Kill ends the server as a crash does. Restart follows.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.process.Stop(); err != nil {
		t.Fatalf("kill PostgreSQL: %v", err)
	}
}

// Restart starts a server that was killed.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatalf("start PostgreSQL again: %v", err)
	}
}

// Suspend stops the processes of the server without ending them; resume continues them.
func (s *Server) Suspend(t testing.TB) (resume func()) {
	t.Helper()
	pids := tree(s.process.PID())
	signal := func(sig syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
	signal(syscall.SIGSTOP)
	return func() { signal(syscall.SIGCONT) }
}

// Standby starts a second server that replicates the first one. It ends with the test.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	standby := &Server{programs: s.programs}
	var err error
	if standby.directory, err = newDirectory(); err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(standby.directory) })
	appendHBA := filepath.Join(s.data(), "pg_hba.conf")
	if err := appendTo(appendHBA, []string{
		"host replication all 127.0.0.1/32 scram-sha-256"}); err != nil {
		t.Fatalf("allow replication: %v", err)
	}
	s.Exec(t, "postgres", "SELECT pg_reload_conf()")
	if err := standby.command("pg_basebackup", "-D", standby.data(), "-R", "-X", "stream", "-c",
		"fast", "--no-sync", "-d", s.URL("postgres")); err != nil {
		t.Fatalf("copy the data for a standby: %v", err)
	}
	if standby.Port, err = freePort(); err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	if err := appendTo(filepath.Join(standby.data(), "postgresql.conf"),
		[]string{fmt.Sprintf("port = %d", standby.Port), "hot_standby = on"}); err != nil {
		t.Fatalf("configure a standby: %v", err)
	}
	if err := standby.run(); err != nil {
		t.Fatalf("start a standby: %v", err)
	}
	t.Cleanup(func() { _ = standby.process.Stop() })
	return standby
}

// AwaitStandby waits until commits wait for the standby, which then has everything before them.
func (s *Server) AwaitStandby(t testing.TB) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	defer conn.Close(ctx)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var follows bool
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_stat_replication "+
			"WHERE state = 'streaming' AND sync_state = 'sync')").Scan(&follows); err != nil {
			t.Fatalf("look for the standby: %v", err)
		}
		if follows {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the standby does not follow the primary")
		}
	}
}

// Promote makes a standby accept writes, and waits until it does.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	s.Exec(t, "postgres", "SELECT pg_promote(true, 60)")
}

// Discard ends a server for good and removes its files, before the end of the test.
func (s *Server) Discard(t testing.TB) {
	t.Helper()
	if err := s.end(); err != nil {
		t.Fatalf("discard a server: %v", err)
	}
}

// programs returns the directory of PostgreSQL's programs, of version 15 or later.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	for _, path := range found {
		if version := filepath.Base(filepath.Dir(filepath.Dir(path))); version >= "15" {
			return filepath.Dir(path), nil
		}
	}
	path, err := testservers.Find("postgres")
	return filepath.Dir(path), err
}

func freePort() (int, error) {
	address, err := testservers.FreeAddress()
	if err != nil {
		return 0, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}
