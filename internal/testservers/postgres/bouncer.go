//go:build unix

package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/tidefill/tidefill/internal/testservers"
)

// Bouncer is a running PgBouncer in front of a server, which pools by transaction.
type Bouncer struct{ Port int }

// StartBouncer starts a PgBouncer that ends with the test. It has few connections to the server, so
// that those of its clients change with every transaction.
func StartBouncer(t testing.TB, s *Server) *Bouncer {
	t.Helper()
	program := testservers.Path(t, "pgbouncer", "/usr/sbin/pgbouncer")
	directory, err := newDirectory()
	if err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	b := &Bouncer{}
	if b.Port, err = freePort(); err != nil {
		t.Fatalf("start PgBouncer: %v", err)
	}
	for name, content := range map[string]string{
		"users.txt": fmt.Sprintf("%q %q\n", User, Password),
		"pgbouncer.ini": strings.Join([]string{
			"[databases]",
			fmt.Sprintf("* = host=127.0.0.1 port=%d", s.Port),
			"[pgbouncer]",
			"listen_addr = 127.0.0.1",
			fmt.Sprintf("listen_port = %d", b.Port),
			"unix_socket_dir =",
			"auth_type = plain",
			"auth_file = " + filepath.Join(directory, "users.txt"),
			"pool_mode = transaction",
			"default_pool_size = 3",
			"max_client_conn = 200",
			"",
		}, "\n"),
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(content),
			0o644); err != nil {
			t.Fatalf("configure PgBouncer: %v", err)
		}
	}
	testservers.Program{Path: program, Args: []string{filepath.Join(directory, "pgbouncer.ini")},
		Dir: directory, User: unprivileged().Credential, End: syscall.SIGTERM,
	}.Run(t, func(ctx context.Context) error {
		config, err := pgx.ParseConfig(b.URL("postgres"))
		if err != nil {
			return err
		}
		config.DefaultQueryExecMode = pgx.QueryExecModeExec
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	return b
}

// URL returns the address of a database behind it, with user and password.
func (b *Bouncer) URL(database string) string {
	return (&Server{Port: b.Port}).URL(database)
}
