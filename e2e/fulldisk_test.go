package e2e

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// awaitStatus repeats a request until the answer has the status, and returns the body.
func awaitStatus(t *testing.T, url string, status int) string {
	t.Helper()
	c := &Client{URL: url, HTTP: &http.Client{Timeout: 5 * time.Second}}
	var last Answer
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(
		20 * time.Millisecond) {
		if last, err = c.Do("GET", "", "", nil); err == nil && last.Status == status {
			return string(last.Body)
		}
	}
	t.Fatalf("%s answers %d %s, %v; want %d", url, last.Status, last.Body, err, status)
	return ""
}

// wantDiskFull fails the test unless the request was refused because the disk is full.
func wantDiskFull(t *testing.T, what string, err error) {
	t.Helper()
	refused := statusError{}
	if !errors.As(err, &refused) || refused.answer.Status != http.StatusInsufficientStorage ||
		!isAboutRoom(string(refused.answer.Body)) {
		t.Errorf("%s on the full disk: %v", what, err)
	}
}

func TestFullDiskCanBeEmptied(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 32<<20)
	stub := NewStub(t, "m")
	admin := freeAddress(t)
	d := NewDaemon(t, Options{
		Upstreams: []string{stub.URL}, Data: filepath.Join(disk, "data"),
		Admin: admin,
		Set:   append([]string{"dispatch.tuning.lease_ttl=3s"}, small...),
	})
	c := d.Client()
	ready := "http://" + admin + "/readyz"
	first := NewLines("first", "m", 100)
	done := c.AwaitEnd(t, c.Submit(t, first.Content, "").ID, 20*time.Second)
	stub.MinDelay, stub.MaxDelay = 100*time.Millisecond, 200*time.Millisecond
	running, cancelled := NewLines("running", "m", 600), NewLines("cancelled", "m", 600)
	runs, ends := c.Submit(t, running.Content, "").ID, c.Submit(t, cancelled.Content, "").ID
	for _, id := range []string{runs, ends} {
		c.Await(t, id, 20*time.Second, func(b Batch) bool { return b.RequestCounts.Completed > 20 })
	}
	change := func(method, path string) {
		t.Helper()
		if answer, err := c.Do(method, path, "", nil); err != nil ||
			answer.Status != http.StatusOK {
			t.Errorf("%s %s on the full disk: %d %.300s, %v", method, path, answer.Status,
				answer.Body, err)
		}
	}
	free := fill(t, disk)
	stuck := func(id string) {
		t.Helper()
		c.Await(t, id, 20*time.Second, func(b Batch) bool {
			return b.WaitsFor("disk_full")
		})
	}
	stuck(runs)
	for round := range 2 {
		if is := awaitStatus(t, ready, http.StatusOK); !strings.Contains(is,
			`"degraded":["disk_full: `) {
			t.Errorf("/readyz on the full disk: %s", is)
		}
		await(t, 20*time.Second, "the pool to say that the disk is full", func() bool {
			return d.PoolReason(t) == "disk_full"
		})
		_, err := c.Upload(NewLines("late", "m", 1).Content)
		wantDiskFull(t, "an upload", err)
		_, err = c.CreateBatch(done.InputFileID, "")
		wantDiskFull(t, "a batch", err)
		for range 20 { // more than the free space
			change("POST", "/v1/batches/"+runs+"/pause")
			change("POST", "/v1/batches/"+runs+"/resume")
		}
		if round == 0 {
			change("POST", "/v1/batches/"+ends+"/cancel")
			change("DELETE", "/v1/files/"+*done.OutputFileID)
			change("DELETE", "/v1/batches/"+done.ID)
		}
		if b := c.Await(t, ends, 20*time.Second, func(b Batch) bool {
			return b.Tidefill.Waiting != nil
		}); b.Status != "cancelling" || !b.WaitsFor("disk_full") {
			t.Errorf("the cancelled batch is %s and waits for %q", b.Status, *b.Tidefill.Waiting)
		}
		if round == 0 {
			d.Restart()
		}
	}
	stuck(runs)
	free()
	c.CheckComplete(t, c.AwaitEnd(t, runs, 60*time.Second), running)
	if b := c.AwaitEnd(t, ends, 30*time.Second); b.Status != "cancelled" {
		t.Errorf("the cancelled batch ended %s", b.Status)
	}
	d.Verify(t, runs)
	d.Verify(t, ends)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		reserve, err := os.Stat(filepath.Join(d.Data, "reserve"))
		if err != nil {
			t.Fatal(err)
		}
		if reserve.Size() == 1<<20 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the reserve has %d bytes again, want %d", reserve.Size(), 1<<20)
		}
	}
}
