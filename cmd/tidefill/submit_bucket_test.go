package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app"
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
