//go:build unix

package postgres

import (
	"os"
	"path/filepath"
	"testing"
)

// ServeTLS makes the server offer TLS with the certificate and the key of two files.
func (s *Server) ServeTLS(t testing.TB, certFile, keyFile string) {
	t.Helper()
	for name, from := range map[string]string{"server.crt": certFile, "server.key": keyFile} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(s.data(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if os.Getuid() != 0 {
			continue
		}
		uid, gid := nobody()
		if err := os.Chown(path, int(uid), int(gid)); err != nil {
			t.Fatal(err)
		}
	}
	s.Exec(t, "postgres", "ALTER SYSTEM SET ssl = on")
	s.Exec(t, "postgres", "SELECT pg_reload_conf()")
}
