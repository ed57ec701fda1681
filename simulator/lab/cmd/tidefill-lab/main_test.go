package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator/lab/bench"
)

// TestMain also runs the roles of children, which are started from the test binary.
func TestMain(m *testing.M) {
	if os.Getenv(bench.RoleVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// outcome is what a command left behind.
type outcome struct {
	status      int
	out, errors string
}

// command runs the program in process.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errors bytes.Buffer
	status := run(t.Context(), args, &out, &errors)
	return outcome{status, out.String(), errors.String()}
}

// must is command with a known status.
func must(t *testing.T, status int, args ...string) outcome {
	t.Helper()
	got := command(t, args...)
	if got.status != status {
		t.Fatalf("tidefill-lab %s: status %d, want %d\nout: %s\nerrors: %s",
			strings.Join(args, " "), got.status, status, got.out, got.errors)
	}
	return got
}

// writeFile puts content into a file of the test's own.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
