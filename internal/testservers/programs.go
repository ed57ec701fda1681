// Package testservers finds the programs that tests start: servers, and what checks files.
package testservers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// Program returns the path of a program like Find, and ends a test without it like Fail.
func Program(t testing.TB, name string, paths ...string) string {
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
