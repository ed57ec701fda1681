package deploy_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// program returns the path of a program of the package prometheus.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs(filepath.Join("..", "bin", name))
	if err == nil {
		path, err = exec.LookPath(path)
	}
	if err != nil {
		t.Fatalf("%v; make setup fetches it", err)
	}
	return path
}

// promtool runs promtool with the given input and fails the test if it finds a fault.
func promtool(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", cmd, err, output)
	}
}
