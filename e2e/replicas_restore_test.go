package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// A database that was restored to a time before its newest files is noticed: what it does not know
// stays, and `tidefill store check` lists that, and what it knows and is gone.
func TestARestoredDatabaseKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	stub, server, database := NewStub(t, "m"), s3.Start(t), postgres.Start(t)
	set := append(clusterStore(t, database), bucket(t, server)...)
	url := set[2]
	name := url[strings.LastIndex(url, "/")+1 : strings.Index(url, "?")]
	o := inCluster(t, stub, "a", set)
	d := NewDaemon(t, o)
	c := d.Client()
	upload := func(lines string) File {
		t.Helper()
		f, err := c.Upload(NewLines(lines, "m", 3).Content)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	stop := func() {
		t.Helper()
		d.Signal(syscall.SIGTERM)
		d.Wait(20 * time.Second)
	}
	beat := filepath.Join(server.Directory, s3.Bucket, "tidefill", "heartbeat")
	beats := func(after string) (content string) {
		t.Helper()
		await(t, 10*time.Second, "a heartbeat after "+after, func() bool {
			read, err := os.ReadFile(beat)
			content = string(read)
			return err == nil && content != after
		})
		return content
	}
	deleted, kept := upload("deleted"), upload("kept")
	first := beats("")
	stop()
	database.Exec(t, "postgres", "CREATE DATABASE backup TEMPLATE "+name)
	d.Start()
	d.AwaitReady()
	newer := upload("newer")
	if answer, err := c.Do(http.MethodDelete, "/v1/files/"+deleted.ID, "", nil); err != nil ||
		answer.Status != http.StatusOK {
		t.Fatalf("delete a file: %v %d", err, answer.Status)
	}
	beats(first)
	stop()

	restored := o
	restored.Set = slices.Clone(o.Set)
	for i := range restored.Set {
		restored.Set[i] = strings.Replace(restored.Set[i], "/"+name+"?", "/backup?", 1)
	}
	var config []string
	for _, s := range append(restored.Set, "data="+t.TempDir()) {
		config = append(config, "--set", s)
	}
	check := func(status int, flags []string, words ...string) {
		t.Helper()
		out, got := d.Run(append(append([]string{"store", "check"}, config...), flags...)...)
		if got != status {
			t.Errorf("store check: status %d, want %d", got, status)
		}
		wantWords(t, "store check", out, words...)
		if strings.Contains(out, kept.ID) {
			t.Errorf("store check lists a file that is complete:\n%s", out)
		}
	}
	check(1, nil, "missing   files/"+deleted.ID, "file "+deleted.ID, "leftover  files/"+newer.ID,
		"newer than all records", "The database was restored")

	// Older than what is swept.
	blob := filepath.Join(server.Directory, s3.Bucket, "tidefill", "blobs", "files", newer.ID)
	for _, path := range []string{blob, blob + ".index"} {
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-100*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	d = NewDaemon(t, restored)
	await(t, 10*time.Second, "that leftovers are left", func() bool {
		return strings.Contains(d.Log(), "leave blobs that no record refers to")
	})
	await(t, 20*time.Second, "that /readyz says so", func() bool { // by a look at the store
		degraded := strings.Join(d.Readiness(t).Degraded, "\n")
		return strings.Contains(degraded, "older than its files") &&
			strings.Contains(degraded, "tidefill store check --accept")
	})
	check(1, []string{"--accept"}, "not accepted", "--allow-missing")
	check(0, []string{"--accept", "--allow-missing"}, "accepted")
	if _, err := os.Stat(blob); err != nil {
		t.Errorf("the newer file was removed: %v", err)
	}
	stop()
	d.Start()
	d.AwaitReady()
	await(t, 10*time.Second, "that the leftover is removed", func() bool {
		_, err := os.Stat(blob)
		return os.IsNotExist(err)
	})
	if degraded := d.Readiness(t).Degraded; len(degraded) > 0 {
		t.Errorf("degraded after it was accepted: %v", degraded)
	}
}
