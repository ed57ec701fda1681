package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
)

func TestVersions(t *testing.T) {
	for _, args := range [][]string{{"--version"}, {"-v"}} {
		if got := must(t, exitOK, args...); !strings.HasPrefix(got.out, "tidefill ") ||
			strings.Contains(got.out, "server") {
			t.Errorf("%v prints %s", args, got.out)
		}
	}
	t.Setenv("TIDEFILL_SERVER", "http://127.0.0.1:1")
	if got := must(t, exitOK, "version"); !strings.Contains(got.out, "server: unknown: ") {
		t.Errorf("without a daemon:\n%s", got.out)
	}
	keys, err := api.ParseKeys("k")
	if err != nil {
		t.Fatal(err)
	}
	startDaemonWith(t, apptest.Config(t.TempDir(), apptest.StartRunner(t, nil)),
		app.Options{Version: "v7", Keys: keys})
	if got := must(t, exitOK, "version"); !strings.Contains(got.out, "TIDEFILL_API_KEY") ||
		strings.Contains(got.out, "v7") {
		t.Errorf("without a key:\n%s", got.out)
	}
	if got := must(t, exitOK, "version", "--api-key", "k"); !strings.Contains(got.out,
		"\nserver v7, http://") {
		t.Errorf("with a daemon:\n%s", got.out)
	}
	var of versions
	got := must(t, exitOK, "version", "--api-key", "k", "-o", "json").out
	if err := json.Unmarshal([]byte(got), &of); err != nil || of.Server.Version != "v7" ||
		of.Client.Version != version() {
		t.Errorf("as JSON (%v): %s", err, got)
	}
}

func TestKeyCreate(t *testing.T) {
	var key struct{ Key, Row string }
	got := must(t, exitOK, "key", "create", "--name", "a: \"b\"", "--tenant", "research", "--role",
		"viewer", "-o", "json").out
	if err := json.Unmarshal([]byte(got), &key); err != nil || strings.Contains(key.Row, key.Key) {
		t.Fatalf("%v: %s", err, got)
	}
	ring, err := api.LoadKeys(writeFile(t, "keys.yaml", "keys:\n  "+key.Row+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	startDaemonWith(t, apptest.Config(t.TempDir(), apptest.StartRunner(t, nil)),
		app.Options{Keys: ring})
	t.Setenv("TIDEFILL_API_KEY", key.Key)
	must(t, exitOK, "batches")
	if got := must(t, exitError, "batch", "submit", writeFile(t, "in.jsonl",
		apptest.BatchFile(1))); !strings.Contains(got.errors, "may only read") {
		t.Errorf("a viewer submits: %s", got.errors)
	}
	if got := must(t, exitOK, "key", "create"); !strings.Contains(got.out, "\n  - {hash: "+
		`"sha256:`) {
		t.Errorf("for people:\n%s", got.out)
	}
	must(t, exitUsage, "key", "create", "--role", "owner")
	must(t, exitUsage, "key", "create", "--tenant", "a b")
}
