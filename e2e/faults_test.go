package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestRunnerOutageCostsNoAttempts(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 10*time.Millisecond, 30*time.Millisecond
	// A line has one attempt, so an attempt that an outage costs fails the line.
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: append([]string{"dispatch.retry.attempts=1"}, small...)})
	c := d.Client()
	lines := NewLines("outage", "m", 300)
	b := c.Submit(t, lines.Content, "")
	for _, done := range []int{30, 120} {
		c.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
			return b.RequestCounts.Completed >= done
		})
		stub.Down()
		c.Await(t, b.ID, 5*time.Second, func(b Batch) bool { return b.Tidefill.Waiting != nil })
		time.Sleep(2 * time.Second)
		stub.Up(t)
	}
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, 20*time.Second), lines)
	d.Verify(t, b.ID)
}

func TestRunnerDownAtTheStart(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.Down()
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small})
	c := d.Client()
	lines := NewLines("late", "m", 20)
	b := c.Submit(t, lines.Content, "")
	c.Await(t, b.ID, 5*time.Second, func(b Batch) bool { return b.Tidefill.Waiting != nil })
	d.Restart()
	time.Sleep(time.Second)
	stub.Up(t)
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, 15*time.Second), lines)
}

func TestGarbageFailsOnlyItsLines(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: append([]string{"dispatch.max_answer_bytes=1048576", "dispatch.retry.tuning.deaths=2"},
			small...)})
	c := d.Client()
	lines := NewLines("garbage", "m", 40)
	hijack := func(w http.ResponseWriter, text string) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		io.WriteString(connection, text)
		connection.Close()
	}
	status := func(status int, kind, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("X-Request-Id", "upstream-1")
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	type treatment struct {
		answer func(http.ResponseWriter)
		status int  // in the error file; 0: a transport error
		once   bool // only for the first attempt, so that the line completes
	}
	refusal := "{\n \"error\": {\"message\":\"too long\",\"code\":1e400,\"ü\":\"\\u00fc\"}}"
	treatments := map[string]treatment{
		"garbage-1": {answer: status(200, "application/json", "this is no JSON")},
		"garbage-2": {answer: status(200, "application/json", `{"cut":`)},
		"garbage-3": {answer: status(200, "application/json", "")},
		"garbage-4": {answer: status(200, "application/json", "[1]\n[2]")},
		"garbage-5": {answer: status(200, "application/json", `{"a":"`+strings.Repeat(
			"x", 2<<20)+`"}`)},
		"garbage-6": {answer: status(400, "application/json", refusal), status: 400},
		"garbage-7": {answer: status(500, "text/html", "<html>\n\x00\xff oops</html>"),
			status: 500},
		"garbage-8": {answer: status(302, "text/plain", "go away")},
		"garbage-9": {answer: func(w http.ResponseWriter) {
			hijack(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
		}},
		"garbage-10": {answer: func(w http.ResponseWriter) { hijack(w, "\x00\x01\x02\r\n\r\n") }},
		"garbage-11": {answer: status(200, "application/json", "x"), once: true},
		"garbage-12": {answer: status(500, "text/plain", "x"), once: true},
		"garbage-13": {answer: func(w http.ResponseWriter) { hijack(w, "") }, once: true},
		"garbage-14": {answer: func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}, once: true},
	}
	type patient struct {
		treatment
		requested atomic.Int64
	}
	byDigest := map[string]*patient{}
	for id, how := range treatments {
		byDigest[Digest([]byte(lines.Bodies[id]))] = &patient{treatment: how}
	}
	stub.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		entry := byDigest[Digest(body)]
		if entry == nil || entry.requested.Add(1) > 1 && entry.once {
			return false
		}
		entry.answer(w)
		return true
	})
	b := c.Submit(t, lines.Content, "")
	// Answers that are none of the endpoint are the runner's fault as long as nothing shows
	// otherwise: these five lines wait until it answers well.
	c.Await(t, b.ID, 30*time.Second, func(b Batch) bool {
		return b.RequestCounts.Completed == 30 && b.RequestCounts.Failed == 5 &&
			b.WaitsFor("runners_failing")
	})
	stub.Intercept(nil)
	b = c.AwaitEnd(t, b.ID, 30*time.Second)
	if b.Status != "completed" {
		t.Fatalf("the batch is %s", b.Status)
	}
	d.Verify(t, b.ID)
	output, failed := c.Results(t, b)
	for _, r := range output {
		if answerDigest(r.Response.Body) != Digest([]byte(lines.Bodies[r.CustomID])) {
			t.Errorf("%s: the output has %.200s", r.CustomID, r.Response.Body)
		}
	}
	if len(output) != 35 || len(failed) != 5 {
		t.Errorf("%d lines completed and %d failed, want 35 and 5", len(output), len(failed))
	}
	for _, r := range failed {
		want := treatments[r.CustomID]
		switch {
		case (r.Error == nil) == (r.Response == nil):
			t.Errorf("%s: want either an error or a response: %+v", r.CustomID, r)
		case want.once || want.answer == nil:
			t.Errorf("%s failed: %+v", r.CustomID, r)
		case want.status != 0 && (r.Response == nil || r.Response.StatusCode != want.status):
			t.Errorf("%s: got %+v, want status %d", r.CustomID, r, want.status)
		case want.status != 0 && r.Response.RequestID != "upstream-1":
			t.Errorf("%s: the runner's request id is missing: %q", r.CustomID, r.Response.RequestID)
		case want.status == 0 && r.Error == nil:
			t.Errorf("%s: got %+v, want an error", r.CustomID, r)
		}
		if r.CustomID == "garbage-6" && !sameButForNewlines(string(r.Response.Body), refusal) {
			t.Errorf("the refusal is %s", r.Response.Body)
		}
	}
}

// sameButForNewlines compares two bodies, one of which was written as a single line.
func sameButForNewlines(a, b string) bool {
	flat := strings.NewReplacer("\n", "", " ", "")
	return flat.Replace(a) == flat.Replace(b)
}

func TestSlowRunnerDoesNotDelayOthers(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		<-r.Context().Done()
		return true
	}
	t.Run("of another model", func(t *testing.T) {
		slow, quick := NewStub(t, "slow"), NewStub(t, "quick")
		slow.Intercept(hang)
		d := NewDaemon(t, Options{Upstreams: []string{slow.URL, quick.URL}, Set: append(
			[]string{"dispatch.cancel_grace=0s"}, small...)})
		c := d.Client()
		// The slow model's lines are first, and are more than the limits of lines in flight and of
		// look-ahead.
		mixed := append(NewLines("a", "slow", 300).Content, NewLines("b", "quick", 300).Content...)
		b := c.Submit(t, mixed, "")
		other := NewLines("c", "quick", 100)
		c.CheckComplete(t, c.AwaitEnd(t, c.Submit(t, other.Content, "").ID, 10*time.Second), other)
		c.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
			return b.RequestCounts.Completed >= 300
		})
	})
	t.Run("of the same model", func(t *testing.T) {
		slow, quick := NewStub(t, "m"), NewStub(t, "m")
		slow.MinDelay, slow.MaxDelay = 3*time.Second, 3*time.Second
		quick.MinDelay, quick.MaxDelay = 5*time.Millisecond, 5*time.Millisecond
		d := NewDaemon(t, Options{Upstreams: []string{slow.URL, quick.URL}, Set: small})
		c := d.Client()
		lines := NewLines("same", "m", 600)
		began := time.Now()
		b := c.Submit(t, lines.Content, "")
		c.CheckComplete(t, c.AwaitEnd(t, b.ID, 20*time.Second), lines)
		if took := time.Since(began); took > 6*time.Second {
			t.Errorf("600 lines took %v: the fast runner waited for the slow one", took)
		}
		if n := slow.Requests(); n > 24 {
			t.Errorf("the slow runner received %d lines", n)
		}
	})
}

func TestCountsAreMonotonic(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = time.Millisecond, 10*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small})
	c := d.Client()
	lines := NewLines("counts", "m", 1500)
	id := c.Submit(t, lines.Content, "").ID
	last := 0
	b := c.Await(t, id, 30*time.Second, func(b Batch) bool {
		// The requests received after the count are at least the completed lines of the count.
		if n := b.RequestCounts.Completed; n < last || n > stub.Requests() {
			t.Errorf("completed is %d after %d, with %d requests sent", n, last, stub.Requests())
		}
		last = b.RequestCounts.Completed
		return b.Ended()
	})
	c.CheckComplete(t, b, lines)
}

// smallDisk mounts a file system of the given size.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("a small disk can't be mounted (run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
	})
	return dir
}

// fill writes until the disk is full and returns a function that frees the space.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

func TestFullDiskPausesBatches(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 32<<20)
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 5*time.Millisecond, 20*time.Millisecond
	var ballast atomic.Pointer[string]
	none, much := "", strings.Repeat("0123456789abcdef", 512)
	ballast.Store(&none)
	stub.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"ballast":%q}`, Digest(body),
			*ballast.Load())
		return true
	})
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Data: filepath.Join(disk, "data"),
		Set: append([]string{"dispatch.tuning.lease_ttl=3s"}, small...)})
	c := d.Client()
	lines := NewLines("disk", "m", 1000)
	ballast.Store(&much)
	b := c.Submit(t, lines.Content, "")
	c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.RequestCounts.Completed > 50 })
	free := fill(t, disk)
	stuck := c.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
		return b.Tidefill.Waiting != nil && isAboutRoom(*b.Tidefill.Waiting)
	})
	t.Logf("waiting: %s", *stuck.Tidefill.Waiting)
	if stuck.Status != "in_progress" {
		t.Errorf("with the disk full, the batch is %s", stuck.Status)
	}

	content := bytes.Repeat(NewLines("big", "m", 1).Content, 4000)
	_, err := c.Upload(content)
	refused := statusError{}
	if !errors.As(err, &refused) || refused.answer.Status != http.StatusInsufficientStorage ||
		!isAboutRoom(string(refused.answer.Body)) {
		t.Errorf("an upload to the full disk: %v", err)
	}
	if ids := listAll(t, c, "/v1/files?limit=100"); len(ids) != 1 {
		t.Errorf("files on the full disk: %v", ids)
	}
	before := stub.Requests()
	time.Sleep(5 * time.Second) // longer than the lease, which cannot be renewed
	if n := stub.Requests() - before; n > 12 {
		t.Errorf("%d lines were sent although their results cannot be stored", n)
	}
	if b, err := c.Batch(b.ID); err != nil || b.Tidefill.Waiting == nil ||
		!isAboutRoom(*b.Tidefill.Waiting) {
		t.Errorf("after a while the batch waits for %q, %v", orZero(b.Tidefill.Waiting), err)
	}
	free()
	ended := c.AwaitEnd(t, b.ID, 30*time.Second)
	c.CheckComplete(t, ended, lines)
	d.Verify(t, b.ID)
	if n := stub.Requests(); n > 1000+12 {
		t.Errorf("%d requests for 1000 lines: answered lines were sent again", n)
	}
	if left := orphans(t, d.Data, map[string]bool{ended.InputFileID: true,
		*ended.OutputFileID: true}); len(left) > 0 {
		t.Errorf("not removed: %v", left)
	}
}

func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 16<<20)
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 5*time.Millisecond, 20*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Data: filepath.Join(disk, "data"),
		Set: small})
	c := d.Client()
	lines := NewLines("start", "m", 300)
	b := c.Submit(t, lines.Content, "")
	c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.RequestCounts.Completed > 20 })
	free := fill(t, disk)
	d.Restart()
	if b, err := c.Batch(b.ID); err != nil || b.Status != "in_progress" {
		t.Errorf("the batch is %s, %v", b.Status, err)
	}
	free()
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, 20*time.Second), lines)
	d.Verify(t, b.ID)
}

func isAboutRoom(text string) bool {
	return strings.Contains(text, "disk") || strings.Contains(text, "space") ||
		strings.Contains(text, "room")
}

func TestEmulatedRunnerWithEveryFault(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	emulator := startRunner(t, address, "--profile", "instant", "--model", "m",
		"--faults", `{"too_many_requests":0.01,"unavailable":0.01,"server_error":0.05,"reset":0.05,"garbage":0.05,"cut":0.05,"jitter":"20ms"}`)
	d := NewDaemon(t, Options{Binary: RaceBinary(t), Upstreams: []string{emulator},
		Set: append([]string{"dispatch.retry.attempts=12", "dispatch.retry.tuning.deaths=100"},
			small...)})
	c := d.Client()
	lines := NewLines("faulty", "m", 300)
	b := c.AwaitEnd(t, c.Submit(t, lines.Content, "").ID, time.Minute)
	if b.Status != "completed" || b.RequestCounts.Completed != 300 {
		t.Errorf("the batch is %s, %+v", b.Status, b.RequestCounts)
	}
	d.Verify(t, b.ID)
}
