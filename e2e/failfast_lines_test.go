package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A batch whose lines are all refused ends at once: that is certainly not the runner's fault.
func TestFailFastRefusedLines(t *testing.T) {
	t.Parallel()
	stub := newBadStub(t, "m", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"no such parameter","code":"unknown_parameter"}}`)
	})
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: []string{"flowcontrol.policy=aimd"}})
	const lines = 5000
	c := d.Client()
	b := c.AwaitEnd(t, c.Submit(t, NewLines("l", "m", lines).Content, "").ID, 20*time.Second)
	if b.Status != "completed" || b.RequestCounts.Failed != lines || stub.Requests() != lines {
		t.Errorf("the batch is %s, %+v after %d requests", b.Status, b.RequestCounts,
			stub.Requests())
	}
	d.checkFailures(t, b, Failure{Count: lines, Status: http.StatusBadRequest,
		Code: "unknown_parameter", Sample: "no such parameter",
		Runner: strings.TrimPrefix(stub.URL, "http://")})
	d.Verify(t, b.ID)
}

// Of a batch of which one line in twenty is answered with 500 each time, these lines fail with the
// answer, and the others complete.
func TestFailFastLinesAtFault(t *testing.T) {
	t.Parallel()
	for _, good := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d runners", 1+good), func(t *testing.T) {
			t.Parallel()
			var upstreams []string
			for range 1 + good {
				stub := NewStub(t, "m")
				stub.MinDelay, stub.MaxDelay = 2*time.Millisecond, 6*time.Millisecond
				stub.Intercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
					if !isTwentieth(body) {
						return false
					}
					apiError(http.StatusInternalServerError)(w, r)
					return true
				})
				upstreams = append(upstreams, stub.URL)
			}
			d := NewDaemon(t, Options{Upstreams: upstreams,
				Set: []string{"flowcontrol.policy=aimd"}})
			c := d.Client()
			lines := NewLines("l", "m", 1000)
			begin := time.Now()
			b := c.AwaitEnd(t, c.Submit(t, lines.Content, "").ID, 40*time.Second)
			t.Logf("ended after %v, %d attempts", time.Since(begin), b.Tidefill.Attempts)
			if b.Status != "completed" || b.RequestCounts.Completed != 950 ||
				b.RequestCounts.Failed != 50 {
				t.Errorf("the batch is %s, %+v", b.Status, b.RequestCounts)
			}
			c.CheckOnce(t, b, lines)
			_, failed := c.Results(t, b)
			for _, r := range failed {
				if r.Response == nil || r.Response.StatusCode != 500 ||
					!strings.Contains(string(r.Response.Body), "boom") {
					t.Errorf("the error file has %+v", r)
				}
			}
			want := Failure{Count: 50, Status: 500, Sample: "boom"}
			if good == 0 {
				want.Runner = strings.TrimPrefix(upstreams[0], "http://")
			}
			d.checkFailures(t, b, want)
			d.Verify(t, b.ID)
		})
	}
}

// isTwentieth reports whether the body is that of a line whose number is a multiple of 20.
func isTwentieth(body []byte) bool {
	_, rest, _ := strings.Cut(string(body), `"content":"l-`)
	number := 1
	fmt.Sscanf(rest, "%d ", &number)
	return number%20 == 0
}

// checkFailures fails the test unless the batch, the command line and the log say why lines failed.
// An empty Runner is any.
func (d *Daemon) checkFailures(t *testing.T, b Batch, want Failure) {
	t.Helper()
	got := Failure{}
	for _, f := range b.Tidefill.Failures {
		if f.Status == want.Status && f.Code == want.Code && f.Sample == want.Sample {
			if want.Runner == "" {
				f.Runner = ""
			}
			f.Count += got.Count
			got = f
		}
	}
	if got != want {
		t.Errorf("tidefill.failures is %+v, want %+v", b.Tidefill.Failures, want)
	}
	out, status := d.Run("batch", "get", b.ID)
	if status != 0 || !strings.Contains(out, fmt.Sprint(want.Status)) ||
		!strings.Contains(out, want.Sample) || !strings.Contains(out, want.Runner) {
		t.Errorf("batch get, status %d:\n%s", status, out)
	}
	ended := 0
	for row := range strings.Lines(d.Log()) {
		if strings.Contains(row, "batch ended") && strings.Contains(row, b.ID) &&
			strings.Contains(row, "level=WARN") {
			ended++
		}
	}
	if ended != 1 {
		t.Errorf("%d warnings say that the batch ended, want 1", ended)
	}
}
