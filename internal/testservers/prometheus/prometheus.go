// Package prometheus starts real Prometheus servers for tests.
package prometheus

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tidefill/tidefill/internal/testservers"
)

// Start starts a server with a configuration, and returns its URL and a function that ends it
// before the test. It may not answer yet.
func Start(t testing.TB, configuration string) (url string, stop func()) {
	t.Helper()
	program := testservers.Path(t, "prometheus")
	address, err := testservers.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	process := testservers.Program{Path: program, Args: []string{"--config.file", config,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address},
	}.Run(t, nil)
	return "http://" + address, func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
	}
}
