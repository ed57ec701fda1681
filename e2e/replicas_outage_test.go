package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// While PostgreSQL is away users get 503 with the time to come back, soon and in OpenAI's form, the
// leader sends nothing once its lease has ended, and those who look see why. Everything goes on by
// itself when it is back, and every line has one result.
func TestUsersLearnOfAnOutage(t *testing.T) {
	for name, away := range map[string]func(*testing.T, *postgres.Server) (back func()){
		"killed": func(t *testing.T, server *postgres.Server) func() {
			server.Kill(t)
			return func() { server.Restart(t) }
		},
		"suspended": func(t *testing.T, server *postgres.Server) func() {
			return server.Suspend(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := postgres.Start(t)
			tr := begin(t, "PostgreSQL is "+name)
			r := startReplicas(t, tr, clusterStore(t, server)...)
			lines := NewLines("outage-"+name, "m", 6000)
			b := r.any(0).Client().Submit(t, lines.Content, "")
			await(t, 10*time.Second, "that lines are sent", func() bool {
				return r.stub.Requests() > 200
			})
			back := away(t, server)
			for _, d := range r.api {
				askWhileAway(t, d, b.ID, lines)
			}
			await(t, 3*nodeLease, "that no line is sent", func() bool {
				before := r.stub.Requests()
				time.Sleep(300 * time.Millisecond)
				return r.stub.Requests() == before
			})
			awaitReason(t, r, "store_unreachable")
			tr.Tried++
			back()
			r.checkResults(t, tr, map[string]Lines{b.ID: lines})
		})
	}
}

// While the bucket is away no more lines start once their results take all memory, files are
// refused with 503, and nothing of an upload stays. Batches go on when it is back.
func TestUsersLearnOfAnOutageOfTheBucket(t *testing.T) {
	objects := s3.Start(t)
	tr := begin(t, "the bucket is away")
	r := startReplicas(t, tr, append(clusterStore(t, postgres.Start(t)), bucket(t, objects)...)...)
	lines := NewLines("outage-bucket", "m", 6000)
	b := r.any(0).Client().Submit(t, lines.Content, "")
	await(t, 20*time.Second, "that lines are sent", func() bool { return r.stub.Requests() > 200 })
	objects.Kill()
	for _, d := range r.api {
		began := time.Now()
		_, err := d.Client().Upload(lines.Content)
		if err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("upload: got %v, want status 503", err)
		}
		if took := time.Since(began); took > mostWait {
			t.Errorf("the upload took %v to fail", took)
		}
		if got, err := d.Client().Batch(b.ID); err != nil || got.ID != b.ID {
			t.Errorf("get the batch: %v %v", got, err) // that is in PostgreSQL
		}
	}
	awaitReason(t, r, "store_unreachable")
	tr.Tried++
	if err := objects.Resume(); err != nil {
		t.Fatal(err)
	}
	r.checkResults(t, tr, map[string]Lines{b.ID: lines})
}

// mostWait bounds how long a request waits for a server that is away.
const mostWait = 20 * time.Second

// askWhileAway sends the requests that users send most.
func askWhileAway(t *testing.T, d *Daemon, batch string, lines Lines) {
	t.Helper()
	c := d.Client()
	var asking sync.WaitGroup
	for _, request := range []struct{ method, path, body string }{
		{http.MethodGet, "/v1/batches/" + batch, ""},
		{http.MethodGet, "/v1/batches", ""},
		{http.MethodPost, "/v1/batches/" + batch + "/cancel", ""},
		{http.MethodPost, "/v1/batches", `{"input_file_id":"file-x",` +
			`"endpoint":"/v1/chat/completions","completion_window":"24h"}`},
		{http.MethodGet, "/v1/files", ""},
	} {
		asking.Go(func() {
			what := fmt.Sprintf("%s %s", request.method, request.path)
			began := time.Now()
			answer, err := c.Do(request.method, request.path, "application/json",
				strings.NewReader(request.body))
			if err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			var body struct{ Error APIError }
			if answer.Status != http.StatusServiceUnavailable ||
				answer.Header.Get("Retry-After") == "" ||
				json.Unmarshal(answer.Body, &body) != nil || body.Error.Message == "" {
				t.Errorf("%s: got %d, Retry-After %q, %s", what, answer.Status,
					answer.Header.Get("Retry-After"), answer.Body)
			}
			if took := time.Since(began); took > mostWait {
				t.Errorf("%s took %v", what, took)
			}
		})
	}
	asking.Go(func() {
		began := time.Now()
		if _, err := c.Upload(lines.Content); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("upload: got %v, want status 503", err)
		}
		if took := time.Since(began); took > mostWait {
			t.Errorf("the upload took %v", took)
		}
	})
	asking.Wait()
}

// awaitReason waits until the leader says why no line starts.
func awaitReason(t *testing.T, r *replicas, reason string) {
	t.Helper()
	await(t, 30*time.Second, "that the leader says "+reason, func() bool {
		for _, d := range r.dispatch {
			var page json.RawMessage
			d.admin(t, "/admin/pools", &page)
			if strings.Contains(string(page), reason) {
				return true
			}
		}
		return false
	})
}
