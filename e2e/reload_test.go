package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// configFile writes configuration files for a daemon, each by a rename.
type configFile struct {
	t    testing.TB
	path string
}

func newConfigFile(t testing.TB, content string) configFile {
	f := configFile{t, filepath.Join(t.TempDir(), "tidefill.yaml")}
	f.write(content)
	return f
}

func (f configFile) write(content string) {
	f.t.Helper()
	if err := os.WriteFile(f.path+".new", []byte(content), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.path+".new", f.path); err != nil {
		f.t.Fatal(err)
	}
}

// awaitPage polls a page of the admin address until it contains a text.
func (d *Daemon) awaitPage(t testing.TB, path, text string) {
	t.Helper()
	var page string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(
		10 * time.Millisecond) {
		answer, err := http.Get("http://" + d.Admin + path)
		if err != nil {
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if page = string(body); err == nil && strings.Contains(page, text) {
			return
		}
	}
	t.Fatalf("%s never has %q:\n%.3000s", path, text, page)
}

// upstreamsAt returns the configuration of these runners under a policy with an objective.
func upstreamsAt(policy string, runners ...*Stub) string {
	file := "flowcontrol: " + policy + "\nupstreams:\n"
	for i, r := range runners {
		file += fmt.Sprintf("- {url: %q, headers: {X-Order: '%d'}}\n", r.URL, i)
	}
	return file
}

// A batch runs while a runner is added, one is removed, one gets other headers, and the policy and
// its objective change. No line is lost or sent twice.
func TestReloadWhileABatchRuns(t *testing.T) {
	t.Parallel()
	var stubs []*Stub
	for range 3 {
		stub := NewStub(t, "m")
		stub.MinDelay, stub.MaxDelay = 20*time.Millisecond, 60*time.Millisecond
		stubs = append(stubs, stub)
	}
	const eight = "{policy: fixed, fixed: {per_runner: 8}}"
	file := newConfigFile(t, upstreamsAt(eight, stubs[0], stubs[1]))
	d := NewDaemon(t, Options{Admin: freeAddress(t), Args: []string{"--config", file.path}})
	c := d.Client()
	lines := NewLines("reload", "m", 3000)
	b := c.Submit(t, lines.Content, "")
	past := func(n int) {
		t.Helper()
		c.Await(t, b.ID, 30*time.Second, func(b Batch) bool {
			return b.RequestCounts.Completed >= n
		})
	}
	past(200)
	file.write(upstreamsAt(eight, stubs[1], stubs[2])) // by the change of the file
	d.awaitPage(t, "/admin/config", stubs[2].URL)
	removed := stubs[0].Requests()
	past(800)
	file.write(upstreamsAt("{policy: aimd, slo: {tpot: 80ms}}", stubs[2], stubs[1]))
	d.Signal(syscall.SIGHUP) // by the signal
	d.awaitPage(t, "/admin/config", "tpot: 80ms")
	ended := c.AwaitEnd(t, b.ID, 60*time.Second)
	c.CheckComplete(t, ended, lines)
	d.Verify(t, b.ID)
	requests := 0
	for i, stub := range stubs {
		requests += stub.Requests()
		if stub.Requests() == 0 {
			t.Errorf("runner %d got no line", i)
		}
	}
	if requests != 3000 {
		t.Errorf("%d requests for 3000 lines", requests)
	}
	// Lines that were on their way to the removed runner may have arrived after the change.
	if more := stubs[0].Requests() - removed; more > 8 {
		t.Errorf("the removed runner got %d lines after it was removed", more)
	}
}

func TestBrokenFileKeepsTheLastGoodOne(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	good := upstreamsAt("{policy: fixed}", stub)
	file := newConfigFile(t, good)
	d := NewDaemon(t, Options{Admin: freeAddress(t), Args: []string{"--config", file.path}})
	const successful = "\ntidefill_config_last_reload_successful "
	d.awaitPage(t, "/metrics", successful+"1")
	for _, broken := range []string{"upstreams: [", "", good + "api: {max_requests: -1}\n",
		"flowcontrol: {policy: fixed}\n"} {
		file.write(broken)
		d.awaitPage(t, "/metrics", successful+"0")
		file.write(good)
		d.awaitPage(t, "/metrics", successful+"1")
	}
	if want := file.path + ":4: api.max_requests is -1"; !strings.Contains(d.Log(), want) {
		t.Errorf("the log has no %q", want)
	}
	c := d.Client()
	lines := NewLines("broken", "m", 50)
	c.CheckComplete(t, c.AwaitEnd(t, c.Submit(t, lines.Content, "").ID, 20*time.Second), lines)
}

func TestHangupWithoutAFile(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 5*time.Millisecond, 10*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Admin: freeAddress(t),
		Set: []string{"flowcontrol.policy=fixed"}})
	c := d.Client()
	lines := NewLines("hangup", "m", 500)
	b := c.Submit(t, lines.Content, "")
	for range 20 {
		d.Signal(syscall.SIGHUP)
		time.Sleep(10 * time.Millisecond)
	}
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, 20*time.Second), lines)
	if n := stub.Requests(); n != 500 || !d.Alive() {
		t.Errorf("%d requests for 500 lines; the daemon lives: %v", n, d.Alive())
	}
	d.awaitPage(t, "/admin/config", stub.URL)
}

func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	dir := t.TempDir()
	keysOf := func(name string, keys ...string) string {
		content := "keys:\n"
		for _, key := range keys {
			hash := sha256.Sum256([]byte(key))
			content += fmt.Sprintf("- {hash: 'sha256:%s'}\n", hex.EncodeToString(hash[:]))
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	with := func(keys string) string {
		return upstreamsAt("{policy: fixed}", stub) + "auth: {keys_file: " + keys + "}\n"
	}
	file := newConfigFile(t, with(keysOf("a", "old", "kept")))
	d := NewDaemon(t, Options{Admin: freeAddress(t), Args: []string{"--config", file.path}})
	status := func(key string) int {
		t.Helper()
		c := d.Client()
		c.Key = key
		answer, err := c.Do("GET", "/v1/batches", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status
	}
	expect := func(key string, want int) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); status(key) != want; time.Sleep(
			10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("key %q: status %d, want %d", key, status(key), want)
			}
		}
	}
	expect("old", 200)
	file.write(with(keysOf("b", "new", "kept"))) // another keys file
	expect("new", 200)
	expect("old", 401)
	keysOf("b", "newest", "kept") // the same file with other keys
	expect("newest", 200)
	expect("new", 401)
	expect("kept", 200)
}
