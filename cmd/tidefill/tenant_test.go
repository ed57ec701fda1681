package main

import (
	"slices"
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

	if got := must(t, exitOK, "tenant", "list", "--api-key", "root"); !strings.Contains(got.out,
		"\na       1       2 ") || !strings.Contains(got.out, "\nb       ") {
		t.Errorf("tenants:\n%s", got.out)
	}
	must(t, exitError, "tenant", "list", "--api-key", "b")

	got := must(t, exitUsage, "tenant", "purge", "a", "--api-key", "root")
	if !strings.Contains(got.errors, "delete 2 batches and 3 files of the tenant a") {
		t.Errorf("without --yes: %s", got.errors)
	}
	must(t, exitError, "tenant", "purge", "a", "--api-key", "b", "--yes")
	// an empty name is most likely a variable that is not set, and not the tenant of the key
	must(t, exitUsage, "tenant", "purge", "", "--api-key", "b", "--yes")
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

func TestListOfAllTenants(t *testing.T) {
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Auth.KeysFile = writeFile(t, "keys.yaml", "keys:\n- {hash: "+api.HashKey("a")+
		", tenant: a}\n- {hash: "+api.HashKey("b")+", tenant: b}\n- {hash: "+
		api.HashKey("root")+", tenant: ops, role: admin}\n")
	startDaemonWith(t, cfg, app.Options{})
	one := writeFile(t, "one.jsonl", apptest.BatchFile(1))
	var owners, ids []string
	for i, deadline := range []string{"4h", "1h", "best_effort", "2h"} {
		owner := string("ab"[i%2])
		owners = append(owners, owner)
		ids = append(ids, strings.TrimSpace(must(t, exitOK, "batch", "submit", one, "--api-key",
			owner, "--window", deadline, "--wait", "-q").out))
	}
	list := func(flags ...string) string {
		flags = append([]string{"batch", "list", "-A", "--api-key", "root"}, flags...)
		return must(t, exitOK, flags...).out
	}
	got := strings.Fields(list("-q", "--sort", "deadline", "--ascending"))
	if want := []string{ids[1], ids[3], ids[0], ids[2]}; !slices.Equal(got, want) {
		t.Errorf("by deadline: got %q, want %q", got, want)
	}
	if got := strings.Fields(list("-q", "-n", "3")); len(got) != 3 {
		t.Errorf("with -n 3: %q", got)
	}
	table := list()
	for i, id := range ids {
		if row := "\n" + owners[i] + "       " + shortID(id); !strings.Contains(table, row) {
			t.Errorf("no row of batch %d, of tenant %s:\n%s", i, owners[i], table)
		}
	}
	must(t, exitUsage, "batch", "list", "-A", "--tenant", "a", "--api-key", "root")
	must(t, exitError, "batch", "list", "-A", "--api-key", "a")
}
