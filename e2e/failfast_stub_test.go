package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// badly answers requests of lines in a way that no emulated runner does.
type badly func(w http.ResponseWriter, r *http.Request)

// htmlPage answers with a status and a page of HTML.
func htmlPage(status int) badly {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		fmt.Fprint(w, "<html><title>Sign in</title></html>")
	}
}

func redirect(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Location", "/login")
	w.WriteHeader(http.StatusFound)
}

func notGzip(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	fmt.Fprint(w, "\x1f\x8b\x08 and no more of gzip")
}

func gzipPage(w http.ResponseWriter, _ *http.Request) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, strings.Repeat("<html>", 100))
	z.Close()
	w.Header().Set("Content-Encoding", "gzip")
	w.Write(packed.Bytes())
}

func slow500(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(200 * time.Millisecond):
	case <-r.Context().Done():
	}
	plain500(w, r)
}

func plain500(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "boom", http.StatusInternalServerError)
}

func apiError(status int) badly {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"error":{"message":"boom","type":"server_error","code":null}}`)
	}
}

// newBadStub serves a model and answers its lines badly.
func newBadStub(t testing.TB, model string, answer badly) *Stub {
	stub := NewStub(t, model)
	stub.Intercept(func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		answer(w, r)
		return true
	})
	return stub
}

// Servers that are no inference engines, and pools of more runners. See
// TestFailFastRunnerBesideAGoodOne.
func TestFailFastServersBesideGoodOnes(t *testing.T) {
	t.Parallel()
	var upstreams []string
	address := func(s *Stub) string {
		upstreams = append(upstreams, s.URL)
		return strings.TrimPrefix(s.URL, "http://")
	}
	var pools []*failFastPool
	for _, of := range []struct {
		model string
		good  int
		bad   []badly
	}{
		{"alone", 1, nil},
		{"404 page", 1, []badly{htmlPage(404)}},
		{"404 error", 1, []badly{apiError(404)}},
		{"302", 1, []badly{redirect}},
		{"not gzip", 1, []badly{notGzip}},
		{"gzip page", 1, []badly{gzipPage}},
		{"slow 500", 1, []badly{slow500}},
		{"plain 500", 1, []badly{plain500}},
		{"501", 1, []badly{apiError(501)}},
		{"504 page", 1, []badly{htmlPage(504)}},
		{"one of four", 3, []badly{apiError(500)}},
		{"two of three", 1, []badly{apiError(500), apiError(401)}},
	} {
		p := &failFastPool{model: of.model, lines: sized(600, 5000)}
		for range of.good {
			stub := NewStub(t, of.model)
			stub.MinDelay, stub.MaxDelay = 20*time.Millisecond, 40*time.Millisecond
			p.good = address(stub)
		}
		for _, answer := range of.bad {
			p.bad = append(p.bad, address(newBadStub(t, of.model, answer)))
		}
		pools = append(pools, p)
	}
	d := NewDaemon(t, Options{Upstreams: upstreams, Admin: freeAddress(t),
		Set: []string{"flowcontrol.policy=aimd"}})
	c := d.Client()
	for _, p := range pools {
		p.batch = c.Submit(t, NewLines("l", p.model, p.lines).Content, "").ID
	}
	watch(t, d, pools)
	for _, p := range pools {
		t.Logf("%s: %v", p.model, p)
		p.check(t, d, pools[0].took)
	}
}

// A user of the official SDK notices nothing of a bad runner beside a good one.
func TestNodeSDKBesideARunnerThatFailsFast(t *testing.T) {
	t.Parallel()
	good, bad := NewStub(t, "m"), newBadStub(t, "m", apiError(500))
	good.MinDelay, good.MaxDelay = 5*time.Millisecond, 10*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{good.URL, bad.URL}, Keys: "own=" + ownKey})
	lines := NewLines("node", "m", 300)
	var run struct {
		Ended   Batch
		Digests map[string]string // by custom_id
	}
	runNode(t, d, &run, "batch.mjs", writeInput(t, "input.jsonl", lines.Content))
	if n := run.Ended.RequestCounts; run.Ended.Status != "completed" || n.Failed != 0 ||
		n.Completed != 300 {
		t.Errorf("the batch is %s, %+v", run.Ended.Status, n)
	}
	for id, body := range lines.Bodies {
		if run.Digests[id] != Digest([]byte(body)) {
			t.Errorf("%s has the answer of another body", id)
		}
	}
	if bad.Requests() == 0 {
		t.Error("the bad runner got no line")
	}
	d.Verify(t, run.Ended.ID)
}
