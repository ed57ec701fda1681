package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A full disk can be emptied through the API: requests that need no space succeed, and after the
// deletion of a file everything continues.
func TestChaosFullDisk(t *testing.T) {
	t.Parallel()
	tr := begin(t, "full disk, emptied through the API")
	disk := smallDisk(t, 128<<20)
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 5*time.Millisecond, 20*time.Millisecond
	much := strings.Repeat("0123456789abcdef", 64)
	// Answers after some hundred wait for the disk to be full, which takes a moment longer where
	// the machine is busy.
	var filling atomic.Bool
	var answers atomic.Int64
	stub.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if filling.Load() && answers.Add(1) > 600 {
			time.Sleep(250 * time.Millisecond)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(
			w, `{"choices":[{"message":{"content":%q}}],"usage":{"total_tokens":5},"ballast":%q}`,
			Digest(body), much)
		return true
	})
	admin := freeAddress(t)
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, Admin: admin,
		Data: filepath.Join(disk, "data"), Set: with("dispatch.tuning.lease_ttl=3s")}))
	c := d.Client()

	large := bytes.Repeat([]byte(line("large")+"\n"), 24<<20/len(line("large")))
	var lost []kill // answers at these times may not have been stored before the kill
	for range sized(2, 20) {
		tr.Tried++
		answers.Store(0)
		filling.Store(true)
		largeFile, err := c.Upload(large)
		if err != nil {
			t.Fatal(err)
		}
		old := NewLines(fmt.Sprint("old-", tr.Tried), "m", 50)
		done := c.AwaitEnd(t, c.Submit(t, old.Content, "").ID, 20*time.Second)
		running := map[string]Lines{}
		submit := func(name string) Batch {
			lines := NewLines(fmt.Sprintf("%s-%d", name, tr.Tried), "m", 1200)
			b := c.Submit(t, lines.Content, "")
			running[b.ID] = lines
			return b
		}
		paused, cancelled, kept := submit("paused"), submit("cancelled"), submit("kept")
		c.Await(t, kept.ID, 10*time.Second, func(b Batch) bool {
			return b.RequestCounts.Completed > 50
		})
		began := time.Now()
		free := fill(t, disk)
		c.Await(t, kept.ID, 20*time.Second, func(b Batch) bool {
			return b.Tidefill.Waiting != nil && isAboutRoom(*b.Tidefill.Waiting)
		})
		filling.Store(false)

		restarted := tr.Tried%2 == 0
		if restarted {
			d.Restart()
			lost = append(lost, kill{began, time.Now()})
		}
		await(t, 10*time.Second, "that the daemon is ready on the full disk", func() bool {
			return readyz(admin) == nil
		})
		for _, request := range []struct{ method, path string }{
			{"POST", "/v1/batches/" + paused.ID + "/pause"},
			{"POST", "/v1/batches/" + paused.ID + "/resume"},
			{"POST", "/v1/batches/" + cancelled.ID + "/cancel"},
			{"DELETE", "/v1/files/" + done.InputFileID},
			{"DELETE", "/v1/files/" + *done.OutputFileID},
			{"DELETE", "/v1/batches/" + done.ID},
			{"GET", "/v1/batches?limit=100"},
			{"GET", "/v1/files"},
		} {
			if answer, err := c.Do(request.method, request.path, "", nil); err != nil ||
				answer.Status != http.StatusOK {
				t.Errorf("%s %s on the full disk (restarted: %v): status %d, %v: %.200s",
					request.method, request.path, restarted, answer.Status, err, answer.Body)
			}
		}
		if _, err := c.Upload(large); err == nil {
			t.Error("24 MiB were stored on a full disk")
		}
		for id := range running { // some continue while there is space
			c.Await(t, id, 20*time.Second, func(b Batch) bool {
				return b.Ended() || b.Tidefill.Waiting != nil
			})
		}

		// The deletion of one large file is enough for all batches to continue.
		if answer, err := c.Do("DELETE", "/v1/files/"+largeFile.ID, "", nil); err != nil ||
			answer.Status != http.StatusOK {
			t.Errorf("deleting 24 MiB from the full disk: status %d, %v: %.200s", answer.Status,
				err, answer.Body)
			free()
			free = func() {}
		}
		for id, lines := range running {
			b := c.AwaitEnd(t, id, 30*time.Second)
			if id == cancelled.ID && b.Status != "cancelled" || id != cancelled.ID &&
				b.Status != "completed" {
				t.Errorf("batch %s is %s", id, b.Status)
			}
			sum := c.CheckOnce(t, b, lines)
			tr.Lost += sum.Lost
			tr.Doubled += sum.Doubled
			d.Verify(t, id)
		}
		free()
		empty(t, c)
	}
	tr.Resent = stub.Repeats()
	without := 0
	for _, attempts := range stub.Ledger() {
		for _, before := range attempts[:len(attempts)-1] {
			if !slices.ContainsFunc(lost, func(m kill) bool {
				return before.End.After(m.begin) && before.Begin.Before(m.end)
			}) {
				without++
			}
		}
	}
	if most := tr.Tried * 12; without > most {
		t.Errorf(
			"%d lines were sent again that had been answered before the disk was full, or by a "+
				"daemon that went on; want at most %d", without, most)
	}
}

// empty deletes all files.
func empty(t *testing.T, c *Client) {
	t.Helper()
	for _, id := range listAll(t, c, "/v1/files?limit=10000") {
		if answer, err := c.Do("DELETE", "/v1/files/"+id, "", nil); err != nil ||
			answer.Status != http.StatusOK {
			t.Errorf("deleting file %s: status %d, %v", id, answer.Status, err)
		}
	}
}
