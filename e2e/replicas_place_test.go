package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// inCluster are the options of a daemon with a directory of its own, on a cluster store.
func inCluster(t *testing.T, stub *Stub, node string, set []string) Options {
	return Options{Data: t.TempDir(), Admin: freeAddress(t), Args: []string{"--node", node},
		Set: append(with("dispatch.tuning.lease_ttl="+bucketLease.String(),
			fmt.Sprintf("upstreams=[{url: %q}]", stub.URL)), set...)}
}

// refusedStart starts a daemon that must end with an error, and returns its log.
func refusedStart(t *testing.T, o Options) string {
	t.Helper()
	o.Binary, o.Listen = Binary(t), freeAddress(t)
	d := &Daemon{Options: o, URL: "http://" + o.Listen, t: t}
	d.Start()
	t.Cleanup(d.Kill)
	if status := d.Wait(20 * time.Second); status == 0 {
		t.Errorf("the daemon ended without an error:\n%s", d.Log())
	}
	return d.Log()
}

func wantWords(t *testing.T, what, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%s: no %q in:\n%s", what, word, text)
		}
	}
}

// A replica with a typo in its prefix or without its mount does not join, so that no batch fails.
func TestAReplicaOfAnotherPlaceDoesNotStart(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	set := append(clusterStore(t, postgres.Start(t)), bucket(t, s3.Start(t))...)
	good := NewDaemon(t, inCluster(t, stub, "a", set))
	file, err := good.Client().Upload(NewLines("place", "m", 20).Content)
	if err != nil {
		t.Fatal(err)
	}
	typo := append(slices.Clone(set), "store.cluster.objects.prefix=tidefil")
	wantWords(t, "a typo", refusedStart(t, inCluster(t, stub, "b", typo)),
		"bucket tidefill-test, prefix tidefill,", "bucket tidefill-test, prefix tidefil;",
		"correct bucket, prefix and endpoint")
	b, err := good.Client().CreateBatch(file.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if b = good.Client().AwaitEnd(t, b.ID, 20*time.Second); b.Status != "completed" {
		t.Errorf("the batch is %s", b.Status)
	}

	shared := clusterStore(t, postgres.Start(t))
	mounted := NewDaemon(t, inCluster(t, stub, "a", shared))
	empty := inCluster(t, stub, "b", shared)
	wantWords(t, "an empty directory", refusedStart(t, empty), "directory "+mounted.Data,
		"no file "+filepath.Join(empty.Data, "cluster-id"), "mount the directory")
}

// While a bucket is emptied, no batch fails for its input: the process leads nothing, says why, and
// goes on when the objects are back.
func TestAnEmptiedBucketFailsNoBatch(t *testing.T) {
	t.Parallel()
	stub, server := NewStub(t, "m"), s3.Start(t)
	set := append(clusterStore(t, postgres.Start(t)), bucket(t, server)...)
	d := NewDaemon(t, inCluster(t, stub, "a", set))
	c := d.Client()
	file, err := c.Upload(NewLines("emptied", "m", 20).Content)
	if err != nil {
		t.Fatal(err)
	}
	objects := filepath.Join(server.Directory, s3.Bucket, "tidefill")
	if err := os.Rename(objects, objects+".away"); err != nil {
		t.Fatal(err)
	}
	b, err := c.CreateBatch(file.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	var ready readiness
	await(t, 20*time.Second, "that the daemon leads nothing", func() bool {
		ready = d.Readiness(t)
		return ready.Roles["dispatch"].State == "leading nothing"
	})
	if ready.Ready {
		t.Error("the daemon is ready")
	}
	wantWords(t, "/readyz", strings.Join(ready.Waiting, "\n"),
		"bucket tidefill-test has no object tidefill/cluster any more")
	answer, err := c.Do(http.MethodGet, "/v1/files/"+file.ID+"/content", "", nil)
	if err != nil || answer.Status != http.StatusServiceUnavailable {
		t.Errorf("content of a file: %v, %d %s", err, answer.Status, answer.Body)
	}
	if now, err := c.Batch(b.ID); err != nil || now.Status != "validating" {
		t.Errorf("the batch is %s, %v", now.Status, err)
	}
	// What was being written when it was emptied may have made the folder again.
	if err := os.RemoveAll(objects); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(objects+".away", objects); err != nil {
		t.Fatal(err)
	}
	if b = c.AwaitEnd(t, b.ID, 30*time.Second); b.Status != "completed" {
		t.Errorf("the batch is %s", b.Status)
	}
	await(t, 10*time.Second, "that the daemon is ready", func() bool {
		return d.Readiness(t).Ready
	})
	wantWords(t, "log", d.Log(), "leading nothing until this is mended")
}

// A second process of a name does not start while the first one runs, and takes nothing from it. A
// process that was killed is replaced at once on its machine, whatever the directory.
func TestTwoProcessesOfOneNameDoNotFight(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	set := append(clusterStore(t, postgres.Start(t)), bucket(t, s3.Start(t))...)
	first := NewDaemon(t, inCluster(t, stub, "n1", set))
	leads := func(d *Daemon) bool {
		return d.Readiness(t).Roles["dispatch"].State == "leading"
	}
	await(t, 10*time.Second, "that the first leads", func() bool { return leads(first) })
	host, _ := os.Hostname()
	wantWords(t, "the second", refusedStart(t, inCluster(t, stub, "n1", set)),
		fmt.Sprintf("process %d on host %s runs under the name n1",
			first.current().PID(), host), "--node")
	if !leads(first) || strings.Contains(first.Log(), "fenced") {
		t.Errorf("the first was disturbed:\n%s", first.Log())
	}
	first.Kill()
	began := time.Now()
	first.Start()
	await(t, 30*time.Second, "that it leads again", func() bool {
		return answers(first) &&
			leads(first)
	})
	restarted := time.Since(began)
	first.Kill()
	began = time.Now()
	other := NewDaemon(t, inCluster(t, stub, "n1", set))
	await(t, 30*time.Second, "that another leads", func() bool { return leads(other) })
	moved := time.Since(began)
	t.Logf("leading again after %v, with another directory after %v", restarted, moved)
	if max(restarted, moved) > bucketLease-time.Second {
		t.Errorf("it waited for the lease of %v", bucketLease)
	}
}

// answers reports whether the address for administration answers.
func answers(d *Daemon) bool {
	response, err := http.Get("http://" + d.Admin + "/healthz")
	if err != nil {
		return false
	}
	response.Body.Close()
	return true
}
