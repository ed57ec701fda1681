package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
)

func TestKeyList(t *testing.T) {
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	hash := func(key string) string { return api.HashKey(key)[:len("sha256:")+8] }
	cfg.Auth.KeysFile = writeFile(t, "keys.yaml", "keys:\n"+
		"- {hash: "+api.HashKey("idle")+", tenant: research, name: nightly-evaluation, "+
		"created: 2020-01-31}\n"+
		"- {hash: "+api.HashKey("look")+", tenant: research, role: viewer, created: yesterday}\n"+
		"- {hash: "+api.HashKey("root")+", tenant: ops, role: admin, name: ops}\n")
	keys, err := api.ParseKeys("team-a=old,team-a=busy")
	if err != nil {
		t.Fatal(err)
	}
	startDaemonWith(t, cfg, app.Options{Keys: keys})
	must(t, exitOK, "files", "list", "--api-key", "busy")

	table := must(t, exitOK, "key", "list", "--api-key", "root").out
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != 6 || !strings.HasPrefix(rows[0], "NAME ") {
		t.Fatalf("got\n%s", table)
	}
	shown := map[string][]string{} // the cells before the hash
	var order []string
	for _, row := range rows[1:] {
		cells := strings.Fields(strings.ReplaceAll(row, " ago", "-ago"))
		shown[cells[5]] = cells[:5]
		order = append(order, cells[5])
		if len(row) > 80 {
			t.Errorf("more than 80 columns: %s", row)
		}
	}
	if last := strings.Join(order[2:], " "); strings.Contains(last, hash("busy")) ||
		strings.Contains(last, hash("root")) {
		t.Errorf("the used keys are not the first:\n%s", table)
	}
	for key, want := range map[string]string{
		"idle": "nightly-evaluation research user 2020-01-31 never",
		"look": "- research viewer - never", "old": "- team-a user - never",
		"busy": "- team-a user - -ago", "root": "ops ops admin - -ago",
	} {
		got := shown[hash(key)]
		for i, cell := range strings.Fields(want) {
			if len(got) <= i || got[i] != cell &&
				(cell != "-ago" || !strings.HasSuffix(got[i], cell)) {
				t.Errorf("key %s: got %q, want %s", key, got, want)
			}
		}
	}

	var k struct {
		ID       string
		LastUsed *int64 `json:"last_used_at"`
	}
	first, _, _ := strings.Cut(must(t, exitOK, "key", "ls", "--tenant", "team-a", "-o", "json",
		"--api-key", "root").out, "\n")
	if err := json.Unmarshal([]byte(first), &k); err != nil || k.LastUsed == nil {
		t.Errorf("got %s, %v", first, err)
	}
	ids := strings.Fields(must(t, exitOK, "key", "ls", "-q", "--tenant", "team-a", "--api-key",
		"root").out)
	if len(ids) != 2 || ids[0] != k.ID {
		t.Errorf("ids: %q, want two, the first %s", ids, k.ID)
	}
	if wide := must(t, exitOK, "key", "ls", "-o", "wide", "--api-key", "root").out; !strings.
		Contains(wide, "  environment  "+k.ID) {
		t.Errorf("with -o wide:\n%s", wide)
	}
	must(t, exitError, "key", "list", "--api-key", "busy")
}
