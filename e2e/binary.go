package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// binaries holds the binaries, which are built on first use.
var binaries struct {
	dir       string
	fast      func() (string, error)
	checked   func() (string, error)
	buildLock sync.Mutex // the builds share packages and the machine
}

func init() {
	binaries.fast = sync.OnceValues(func() (string, error) { return build("tidefill") })
	binaries.checked = sync.OnceValues(func() (string, error) {
		// The flags are those of the unit tests, which have compiled the packages.
		return build("tidefill-race", "-race", "-gcflags=modernc.org/...=-race=false")
	})
}

// Main runs the tests and removes the binaries.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tidefill-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries.dir = dir
	return m.Run()
}

// Binary returns the path of the program as users get it.
func Binary(t testing.TB) string { return built(t, binaries.fast) }

// RaceBinary returns the path of the program with the race detector.
func RaceBinary(t testing.TB) string { return built(t, binaries.checked) }

func built(t testing.TB, binary func() (string, error)) string {
	t.Helper()
	// go test reuses a result only if a variable that a test has read is the same.
	os.Getenv("TIDEFILL_SOURCES")
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func build(name string, flags ...string) (string, error) {
	binaries.buildLock.Lock()
	defer binaries.buildLock.Unlock()
	path := filepath.Join(binaries.dir, name)
	cmd := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path,
		"./cmd/tidefill")...)
	cmd.Dir = ".."
	if slices.Contains(flags, "-race") {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1") // the race detector is linked with cgo
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}
