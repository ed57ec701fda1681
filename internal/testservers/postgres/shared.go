//go:build unix

package postgres

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/tidefill/tidefill/internal/testservers"
)

// shared is the server of a test binary.
var shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests of a package that uses Shared, and ends the server after them:
//
//	func TestMain(m *testing.M) { postgres.Main(m) }
func Main(m *testing.M) {
	code := m.Run()
	if s := shared.server; s != nil {
		if err := s.end(); err != nil {
			println("end PostgreSQL:", err.Error())
			code = 1
		}
	}
	os.Exit(code)
}

// Shared returns the one server of a test binary whose TestMain is Main. Each test uses databases
// of its own in it.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = start(nil) })
	if shared.err != nil {
		testservers.Fail(t, fmt.Errorf("start PostgreSQL: %w", shared.err))
	}
	return shared.server
}
