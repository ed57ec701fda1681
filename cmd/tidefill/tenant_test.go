package main

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner/emulator"
)

func TestTenantPurge(t *testing.T) {
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, func(c *emulator.Config) {
		c.Faults.Latency = emulator.Duration(10e6)
	}))
	cfg.Auth.KeysFile = writeFile(t, "keys.yaml", "keys:\n- {hash: "+api.HashKey("a")+
		", tenant: a}\n- {hash: "+api.HashKey("b")+", tenant: b}\n- {hash: "+
		api.HashKey("root")+", tenant: ops, role: admin}\n")
	startDaemonWith(t, cfg, app.Options{})
	few := writeFile(t, "few.jsonl", apptest.BatchFile(2))
	many := writeFile(t, "many.jsonl", apptest.BatchFile(2000))
	must(t, exitOK, "batch", "submit", few, "--api-key", "a", "--wait")
	must(t, exitOK, "batch", "submit", many, "--api-key", "a")
	kept := strings.TrimSpace(must(t, exitOK, "batch", "submit", few, "--api-key", "b", "-q").out)

	got := must(t, exitUsage, "tenant", "purge", "a", "--api-key", "root")
	if !strings.Contains(got.errors, "delete 2 batches and 3 files of the tenant a") {
		t.Errorf("without --yes: %s", got.errors)
	}
	must(t, exitError, "tenant", "purge", "a", "--api-key", "b", "--yes")
	got = must(t, exitOK, "tenant", "purge", "a", "--api-key", "root", "--yes")
	if !strings.HasPrefix(got.out, "a  deleted 2 batches and ") {
		t.Errorf("purge prints %s", got.out)
	}
	for _, command := range []string{"batch", "files"} {
		if got := must(t, exitOK, command, "list", "-q", "--api-key", "a"); got.out != "" {
			t.Errorf("%s left:\n%s", command, got.out)
		}
	}
	must(t, exitOK, "batch", "get", kept, "--api-key", "b")
}
