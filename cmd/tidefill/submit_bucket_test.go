package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/apptest"
	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
	"github.com/tidefill/tidefill/store/places"
)

// teamBucket starts a daemon whose users may name a bucket, and returns the objects of that.
func teamBucket(t *testing.T) *places.Shared {
	t.Helper()
	server, secret := servers.Start(t), t.TempDir()
	for name, value := range map[string]string{"access-key-id": servers.AccessKey,
		"secret-access-key": servers.SecretKey} {
		if err := os.WriteFile(filepath.Join(secret, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Buckets = []buckets.Entry{{Name: "team", Bucket: servers.Bucket, Backend: "minio",
		EndpointURL: server.URL, CredentialsSecretRef: secret, Access: "read_write"}}
	startDaemonWith(t, cfg, app.Options{})
	p := places.New(places.Options{})
	t.Cleanup(func() { p.Close() })
	return p.Shared(store.Storage{Backend: "minio", Bucket: servers.Bucket,
		EndpointURL: server.URL, Credentials: secret}, "")
}

func putObject(t *testing.T, to buckets.Objects, name, content string) {
	t.Helper()
	w, err := to.Create(t.Context(), name)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err == nil {
		err = w.Commit(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSubmitInABucket(t *testing.T) {
	objects, url := teamBucket(t), "s3://"+servers.Bucket+"/"
	putObject(t, objects, "in/a b.jsonl", apptest.BatchFile(3))
	got := must(t, exitOK, "batch", "submit", url+"in/a b.jsonl", "--dry-run")
	if !strings.Contains(got.out, "lines      3") {
		t.Errorf("got %s", got.out)
	}
	got = must(t, exitOK, "batch", "submit", url+"in/", "--wait")
	for _, want := range []string{"3 completed, 0 failed", "input      " + url + "in/\n"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("got %s, want %q in it", got.out, want)
		}
	}
	got = must(t, exitOK, "batch", "submit", url+"in/a b.jsonl", "--output-url", url+"out/",
		"--wait")
	if want := "bucket     " + url + "out/, delivered\n"; !strings.Contains(got.out, want) {
		t.Errorf("got %s, want %q in it", got.out, want)
	}
	results, err := objects.List(t.Context(), "out/", "", 10)
	if err != nil || len(results) != 1 || !strings.HasSuffix(results[0].Key, "/output.jsonl") {
		t.Errorf("got results %v, %v", results, err)
	}
	for args, want := range map[string]string{
		url + "in/a.jsonl " + url + "in/b.jsonl": "name it alone",
		url + "none.jsonl":                       "there is no object",
	} {
		got := command(t, append([]string{"batch", "submit"}, strings.Fields(args)...)...)
		if got.status == exitOK || !strings.Contains(got.errors, want) {
			t.Errorf("%s: status %d, %s; want %q", args, got.status, got.errors, want)
		}
	}
}

// Rows of an object and of a local file become the same lines.
func TestSubmitRows(t *testing.T) {
	objects, url := teamBucket(t), "s3://"+servers.Bucket+"/"
	const rows = "id,question\nx,\"Why, \"\"you\"\"?\"\ny,How?\n"
	putObject(t, objects, "rows.csv", rows)
	model := apptest.BatchFile(1)
	_, model, _ = strings.Cut(model, `"model":"`)
	model, _, _ = strings.Cut(model, `"`)
	body := writeFile(t, "body.json", `{"model": "`+model+`",
		"messages": [{"role": "user", "content": "{{question}}"}]}`)
	contents := map[string]bool{}
	for _, input := range []string{url + "rows.csv", writeFile(t, "rows.csv", rows)} {
		got := must(t, exitOK, "batch", "submit", input, "--csv-id", "id", "--csv-body", body,
			"--wait", "--json")
		var b client.Batch
		if err := json.Unmarshal([]byte(got.out), &b); err != nil || b.Counts.Completed != 2 {
			t.Fatalf("%s: %v: %s", input, err, got.out)
		}
		contents[must(t, exitOK, "files", "download", b.InputFileID).out] = true
	}
	if len(contents) != 1 {
		t.Errorf("got different lines: %v", contents)
	}
	before := must(t, exitOK, "files", "list", "-o", "name").out
	got := command(t, "batch", "submit", writeFile(t, "faulty.csv", "id,question\na\nb\nc,x\n"),
		"--csv-body", body)
	if got.status == exitOK || strings.Count(got.errors, "it has 1 cells") != 2 {
		t.Errorf("status %d, %s", got.status, got.errors)
	}
	if after := must(t, exitOK, "files", "list", "-o", "name").out; after != before {
		t.Errorf("files are left: %s", after)
	}
}
