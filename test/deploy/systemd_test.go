package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// systemd accepts the unit, and rates what it can reach as little.
func TestSystemd(t *testing.T) {
	const command = "/usr/local/bin/tidefill serve --config /etc/tidefill/tidefill.yaml"
	text := read(t, "../../deploy/systemd/tidefill.service")
	if !strings.Contains(text, "ExecStart="+command+"\n") {
		t.Errorf("the unit does not run %s", command)
	}
	if fault := tidefillFault(t, strings.Fields(command)[1:]); fault != "" {
		t.Error(fault)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit := filepath.Join(t.TempDir(), "tidefill.service")
	text = strings.ReplaceAll(text, "/usr/local/bin/tidefill", binary(t))
	if err := os.WriteFile(unit, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"verify", unit},
		{"security", "--offline=yes", "--threshold=15", "--no-pager", unit}, // 1.5 of 10
	} {
		output, err := exec.Command("systemd-analyze", args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(output) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, output)
		}
	}
}
