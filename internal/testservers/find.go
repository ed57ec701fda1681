package testservers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// ErrMissing is of a program that is not installed.
var ErrMissing = errors.New("not installed; make setup installs it")

// Find returns the path of a program in bin/ of the repository, at one of the given paths, or in
// PATH. The working directory must be in the repository, as that of a test is.
func Find(name string, paths ...string) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	for _, path := range append([]string{filepath.Join(root, "bin", name)}, paths...) {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s: %w", name, ErrMissing)
}

// Path returns the path of a program like Find, and ends a test without it like Fail.
func Path(t testing.TB, name string, paths ...string) string {
	t.Helper()
	path, err := Find(name, paths...)
	if err != nil {
		Fail(t, err)
	}
	return path
}

// Fail ends a test that can't start a program. Where the program is not installed the test is
// skipped, but with TIDEFILL_SERVERS=required, which make test sets.
func Fail(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrMissing) && os.Getenv("TIDEFILL_SERVERS") != "required" {
		t.Skip(err)
	}
	t.Fatal(err)
}

func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "tools", "setup")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not in the repository")
		}
	}
}

// given holds what FreeAddress has tried.
var given sync.Map

// FreeAddress returns an address of loopback on which nothing listens. Its port is below those of
// outgoing connections: one of these could otherwise take it while a server restarts. It returns
// no address twice.
func FreeAddress() (string, error) {
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		if _, is := given.LoadOrStore(address, true); is {
			continue // not even tried: whoever has it may be about to listen
		}
		if free(address) {
			return address, nil
		}
	}
	return "", errors.New("no free port found")
}

// free reports whether nothing listens on an address. No process is started meanwhile: until it
// executes its program, it would have the socket too, and keep the address from its owner.
func free(address string) bool {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	l.Close()
	return true
}
