package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

// A backup that is taken in the middle of a batch continues it, and has the results until then.
func TestStoreBackup(t *testing.T) {
	data, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup")
	_, stop := startDaemon(t, data, apptest.StartRunner(t, func(c *emulator.Config) {
		c.Faults.Latency = emulator.Duration(20e6)
	}))
	input := writeFile(t, "in.jsonl", apptest.BatchFile(1000))
	ended := idOf(t, must(t, exitOK, "batch", "submit", writeFile(t, "few.jsonl",
		apptest.BatchFile(3)), "--wait", "--json").out)
	id := idOf(t, must(t, exitOK, "batch", "submit", input, "--json").out)
	for !strings.Contains(must(t, exitOK, "batch", "results", id).out, "line-") {
		must(t, exitOK, "batch", "get", id)
	}
	got := must(t, exitOK, "store", "backup", "--data", data, backup)
	if !strings.Contains(got.out, " blobs, 2 journals; copied ") {
		t.Errorf("backup prints %s", got.out)
	}
	if info, err := os.Stat(backup); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode of the backup: %v, %v", info, err)
	}
	// Directories may be older than the store, and open to all users of the machine.
	for _, root := range []string{data, backup} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if info, _ := os.Stat(path); err == nil && info != nil && !entry.IsDir() &&
				info.Mode().Perm()&0o007 != 0 {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	// what is deleted afterwards stays in the backup
	for file := range strings.Lines(must(t, exitOK, "files", "list", "-q").out) {
		must(t, exitOK, "files", "rm", strings.TrimSpace(file))
	}
	stop()
	must(t, exitOK, "store", "backup", "--data", data, backup+"-stopped")
	startDaemon(t, backup, apptest.StartRunner(t, nil))
	must(t, exitOK, "verify", ended)
	must(t, exitOK, "batch", "watch", id)
	must(t, exitOK, "verify", id)

	for want, args := range map[string][]string{
		"exists; name a new":   {"--data", data, backup},
		"is inside of it":      {"--data", data, filepath.Join(data, "blobs", "b")},
		"is it the data":       {"--data", t.TempDir(), backup + "2"},
		"--config FILE, or --": {backup + "2"},
		"its bucket: docs": {"--config", writeFile(t, "c.yaml",
			"store: {backend: cluster, cluster: {metadata: {url: 'postgres://a/b'}}}"),
			backup + "2"},
	} {
		if got := command(t, append([]string{"store", "backup"}, args...)...); got.status ==
			exitOK || !strings.Contains(got.errors, want) {
			t.Errorf("%v: %s", args, got.errors)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(backup), "*.part")); len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
