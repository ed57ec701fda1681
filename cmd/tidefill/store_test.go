//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/apptest"
	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	tests3 "github.com/tidefill/tidefill/internal/testservers/s3"
)

// gate is a runner that answers so many lines and then holds the others.
type gate struct {
	URL string

	mu   sync.Mutex
	open int
	sent map[string]int // requests by body
}

func startGate(t *testing.T) *gate {
	g := &gate{sent: map[string]int{}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	g.URL = server.URL
	return g
}

// admit lets n more lines be answered.
func (g *gate) admit(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open += n
}

func (g *gate) count(body string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sent[body]++
}

// enter reports whether a line may be answered now.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == 0 {
		return false
	}
	g.open--
	return true
}

// counts returns how many lines were sent, and how many requests there were.
func (g *gate) counts() (lines, requests int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.sent {
		requests += n
	}
	return len(g.sent), requests
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		w.Write([]byte(`{"object":"list","data":[{"id":"m","object":"model"}]}`))
		return
	}
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	g.count(string(body))
	for again := time.NewTicker(10 * time.Millisecond); !g.enter(); {
		select {
		case <-r.Context().Done():
			return
		case <-again.C:
		}
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":`+
		`{"role":"assistant","content":"ok"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
}

const storesCommon = `listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
node: n
shutdown: {drain: 50ms}
flowcontrol: {policy: fixed, fixed: {per_runner: 20}}
upstreams: [{url: %s}]
`

// completed waits until so many lines of a batch are done, durably, and no more come.
func completed(t *testing.T, url, id string, want int) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var b struct {
			Counts struct{ Completed int } `json:"request_counts"`
		}
		got := must(t, exitOK, "batch", "get", id, "--json", "--server", url)
		if err := json.Unmarshal([]byte(got.out), &b); err != nil {
			t.Fatal(err)
		}
		if b.Counts.Completed >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d lines are done, want %d", b.Counts.Completed, want)
		}
	}
}

// An installation moves from the embedded store to PostgreSQL and a bucket after its daemon was
// killed within a batch, and back. The batch continues each time.
func TestStoreCopyMovesARunningBatch(t *testing.T) {
	server, objects, runner := testpostgres.Start(t), tests3.Start(t), startGate(t)
	common := fmt.Sprintf(storesCommon, runner.URL)
	embedded := writeFile(t, "embedded.yaml", common+"data: "+t.TempDir()+
		"\ndispatch: {tuning: {lease_ttl: 3s}}\n")
	base := clusterConfig(t, server.URL(server.NewDatabase(t)))
	content, err := os.ReadFile(base)
	if err != nil {
		t.Fatal(err)
	}
	cluster := writeFile(t, "cluster.yaml", common+"dispatch: {tuning: {lease_ttl: 8s}}\n"+
		string(content)+objectsConfig(t, objects))

	daemon, url := startProcess(t, "serve", "--config", embedded)
	runner.admit(5)
	small := idOf(t, must(t, exitOK, "batch", "submit", writeFile(t, "s.jsonl",
		apptest.BatchFile(5)), "--wait", "--json", "--server", url).out)
	const lines = 600
	input := strings.ReplaceAll(apptest.BatchFile(lines), `"content":"`, `"content":"big `)
	runner.admit(200)
	big := idOf(t, must(t, exitOK, "batch", "submit", writeFile(t, "b.jsonl", input), "--json",
		"--server", url).out)
	completed(t, url, big, 200)
	wantOutput(t, must(t, exitError, "store", "copy", "--from", embedded, "--to", cluster),
		"embedded.yaml: node n runs; stop all processes")
	daemon.Process.Kill()
	daemon.Wait()
	wantOutput(t, must(t, exitError, "store", "copy", "--from", embedded, "--to", cluster),
		"the lease of node n lasts")
	time.Sleep(3 * time.Second) // the lease
	got := must(t, exitOK, "store", "copy", "--from", embedded, "--to", cluster)
	wantOutput(t, got, "verified: both stores have the same")
	wantOutput(t, got, "results           2")
	t.Log(got.out, got.errors)
	wantOutput(t, must(t, exitOK, "store", "copy", "--from", embedded, "--to", cluster),
		"moved before: nothing to do")
	wantOutput(t, must(t, exitError, "serve", "--config", embedded), "this store was moved to ")

	daemon, url = startProcess(t, "serve", "--config", cluster)
	must(t, exitOK, "verify", small, "--server", url)
	completed(t, url, big, 200) // paid results are there
	runner.admit(200)
	completed(t, url, big, 400)
	daemon.Process.Signal(syscall.SIGTERM)
	daemon.Wait()
	got = must(t, exitOK, "store", "copy", "--from", cluster, "--to", embedded)
	t.Log(got.out, got.errors)
	wantOutput(t, must(t, exitError, "serve", "--config", cluster), "this store was moved to ")

	_, url = startProcess(t, "serve", "--config", embedded)
	completed(t, url, big, 400)
	runner.admit(10 * lines)
	must(t, exitOK, "batch", "watch", big, "--server", url)
	for _, id := range []string{small, big} {
		must(t, exitOK, "verify", id, "--server", url)
	}
	// Only lines that were in flight when a daemon ended are sent again, 20 at most each time.
	sent, requests := runner.counts()
	if sent != lines+5 || requests > sent+2*20 {
		t.Errorf("%d lines in %d requests, want %d lines and at most 40 requests more", sent,
			requests, lines+5)
	}
}

// objectsConfig follows the configuration of a cluster store, to have its files in a bucket.
func objectsConfig(t *testing.T, objects *tests3.Server) string {
	access, secret := tests3.Secrets(t)
	return fmt.Sprintf(`    objects: {endpoint: %s, bucket: %s, path_style: true,
      access_key_file: %s, secret_key_file: %s}
`, objects.URL, tests3.Bucket, access, secret)
}

// awaitReady waits until the daemon with this admin address is ready.
func awaitReady(t *testing.T, admin string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		response, err := http.Get("http://" + admin + "/readyz")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the daemon is not ready")
		}
	}
}

// A daemon that only serves users is noticed by a copy too.
func TestStoreCopyRefusesADaemonThatServesUsers(t *testing.T) {
	server, runner := testpostgres.Start(t), startGate(t)
	common := fmt.Sprintf(storesCommon, runner.URL)
	base, err := os.ReadFile(clusterConfig(t, server.URL(server.NewDatabase(t))))
	if err != nil {
		t.Fatal(err)
	}
	base = append(base, objectsConfig(t, tests3.Start(t))...)
	cluster := func(directory string) string {
		return writeFile(t, "cluster.yaml", common+"dispatch: {tuning: {lease_ttl: 8s}}\n"+
			strings.Replace(string(base), "data: ", "data: "+directory+" # ", 1))
	}
	// Another machine has another directory.
	there := cluster(t.TempDir())
	here := writeFile(t, "here.yaml", common+string(base))
	embedded := writeFile(t, "embedded.yaml", common+"data: "+t.TempDir()+"\n")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	admin := listener.Addr().String()
	listener.Close()
	daemon, _ := startProcess(t, "serve", "--config", there, "--roles", "api",
		"--admin-listen", admin)
	awaitReady(t, admin)
	for _, sides := range [][2]string{{here, embedded}, {embedded, here}} {
		wantOutput(t, must(t, exitError, "store", "copy", "--from", sides[0], "--to", sides[1]),
			"node n/api")
	}
	daemon.Process.Signal(syscall.SIGTERM)
	daemon.Wait()
	must(t, exitOK, "store", "copy", "--from", here, "--to", embedded)
}
