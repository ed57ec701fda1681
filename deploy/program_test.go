package deploy_test

import (
	"os/exec"
	"testing"
)

// promtool runs promtool with the given input and fails the test if it finds a fault.
func promtool(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", cmd, err, output)
	}
}
