package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// writeLimit bounds how long a client waits for an answer while the database is locked.
const writeLimit = 20 * time.Second

// While another process holds the lock of the database, writes get 503 with Retry-After. Afterwards
// everything continues.
func TestChaosLockedDatabase(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "database locked by another process")
	stub := NewStub(t, "m")
	stub.MaxDelay = 10 * time.Millisecond
	admin := freeAddress(t)
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, Admin: admin,
		Set: with("dispatch.tuning.lease_ttl=3s")}))
	c := d.Client()
	for range sized(1, 10) {
		tr.Tried++
		old := NewLines(fmt.Sprint("old-", tr.Tried), "m", 20)
		done := c.AwaitEnd(t, c.Submit(t, old.Content, "").ID, 20*time.Second)
		running := map[string]Lines{}
		submit := func(name string) Batch {
			lines := NewLines(fmt.Sprintf("%s-%d", name, tr.Tried), "m", 900)
			b := c.Submit(t, lines.Content, "")
			running[b.ID] = lines
			return b
		}
		paused, cancelled, kept := submit("paused"), submit("cancelled"), submit("kept")
		c.Await(t, kept.ID, 10*time.Second, func(b Batch) bool {
			return b.RequestCounts.Completed > 100
		})

		unlock := LockDatabase(t, d.Data)
		locked := time.Now()
		requestAll(t, c, []request{
			{"GET", "/v1/batches/" + kept.ID, "", nil, http.StatusOK},
			{"GET", "/v1/batches?limit=100", "", nil, http.StatusOK},
			{"GET", "/v1/files", "", nil, http.StatusOK},
			{"GET", "/v1/files/" + done.InputFileID + "/content", "", nil, http.StatusOK},
			uploadOf(line("a")),
			{"POST", "/v1/uploads", "application/json", []byte(
				`{"filename":"a.jsonl","purpose":"batch","bytes":10,"mime_type":"application/jsonl"}`), 0},
			{"POST", "/v1/batches", "application/json", fmt.Appendf(
				nil, `{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, kept.InputFileID), 0},
			{"POST", "/v1/batches/" + paused.ID + "/pause", "", nil, 0},
			{"POST", "/v1/batches/" + cancelled.ID + "/cancel", "", nil, 0},
			{"DELETE", "/v1/files/" + *done.OutputFileID, "", nil, 0},
			{"DELETE", "/v1/batches/" + done.ID, "", nil, 0},
		})
		// longer than the longest wait of a write
		time.Sleep(time.Until(locked.Add(sized(22*time.Second, 50*time.Second))))
		unlock()

		for id, lines := range running {
			b := c.AwaitEnd(t, id, 30*time.Second)
			sum := c.CheckOnce(t, b, lines)
			tr.Lost += sum.Lost
			tr.Doubled += sum.Doubled
			c.CheckComplete(t, b, lines)
			d.Verify(t, id)
		}
		await(t, 10*time.Second, "that the daemon is ready", func() bool {
			return readyz(admin) == nil
		})
		if tr.Tried == 1 { // a refused request has stored nothing
			if files := listAll(t, c, "/v1/files?limit=100"); len(files) != 2*4 {
				t.Errorf("there are %d files, want 8: %v", len(files), files)
			}
			if batches := listAll(t, c, "/v1/batches?limit=100"); len(batches) != 4 {
				t.Errorf("there are %d batches, want 4", len(batches))
			}
		}
	}
	tr.Resent = stub.Repeats()
	if most := tr.Tried * 3 * 12; tr.Resent > most {
		t.Errorf("%d lines were sent again, want at most %d", tr.Resent, most)
	}
}

// request is sent while the database is locked.
type request struct {
	method, path, kind string
	body               []byte
	status             int // 0: 503 with Retry-After
}

func uploadOf(content string) request {
	kind, form := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", []byte(content))
	return request{"POST", "/v1/files", kind, form, 0}
}

// requestAll sends requests concurrently. The test fails unless each is answered in time and as
// expected.
func requestAll(t *testing.T, c *Client, requests []request) {
	t.Helper()
	var all sync.WaitGroup
	for _, r := range requests {
		all.Go(func() {
			began := time.Now()
			answer, err := c.Do(r.method, r.path, r.kind, bytes.NewReader(r.body))
			took := time.Since(began).Round(time.Second)
			what := r.method + " " + strings.TrimRight(
				r.path, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
			switch {
			case err != nil:
				t.Errorf("%s: %v after %v", what, err, took)
			case r.status == 0 && (answer.Status != http.StatusServiceUnavailable ||
				answer.Header.Get("Retry-After") == ""):
				t.Errorf("%s: status %d after %v with Retry-After %q, want 503 with one: %.200s",
					what, answer.Status, took, answer.Header.Get("Retry-After"), answer.Body)
			case r.status != 0 && answer.Status != r.status:
				t.Errorf("%s: status %d after %v, want %d: %.200s", what, answer.Status, took,
					r.status, answer.Body)
			}
			if took > writeLimit {
				t.Errorf("%s: answered after %v, want at most %v", what, took, writeLimit)
			}
		})
	}
	all.Wait()
}
