package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
)

func TestAdminRoutes(t *testing.T) {
	d, _ := startDaemon(t, t.TempDir(), startRunner(t, nil))
	admin := d.adminURL()
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/debug/pprof/",
		"/debug/pprof/heap"} {
		if status := get(t, admin+path); status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if status := get(t, d.url()+"/metrics"); status != http.StatusNotFound {
		t.Errorf("the API serves /metrics: status %d", status)
	}
	d.draining.Store(true)
	if status := get(t, admin+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz while draining: status %d", status)
	}
}

// startHanging serves a runner that takes every line and answers none. It says so on received, if
// anyone listens.
func startHanging(t *testing.T, received chan<- struct{}) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			w.Write([]byte(`{"object":"list","data":[{"id":"m","object":"model"}]}`))
			return
		}
		io.Copy(io.Discard, r.Body) // a server sees its client leave only when it has read the body
		select {
		case received <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestRestartGoesOn(t *testing.T) {
	data, input := t.TempDir(), writeFile(t, "in.jsonl", batchLines(40))

	_, stop := startDaemon(t, data, startHanging(t, nil))
	id := idOf(t, must(t, exitOK, "batch", "submit", input, "--json").out)
	stop() // lines under way are put back after the drain time

	startDaemon(t, data, startRunner(t, nil))
	must(t, exitOK, "batch", "watch", id)
	must(t, exitOK, "verify", id)
}

func TestKeysAreAsked(t *testing.T) {
	t.Setenv("TIDEFILL_API_KEYS", "team-a=secret-a")
	file := writeFile(t, "keys.yaml",
		"keys: [{hash: '"+api.HashKey("secret-b")+"', tenant: team-b}]\n")
	cfg, err := config.Parse("", nil, setting("listen", "listen", "0.0.0.0:0"),
		setting("keys", "auth.keys_file", file))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := loadKeys(cfg)
	if err != nil {
		t.Fatal(err)
	}
	startDaemonWith(t, t.TempDir(), keys, startRunner(t, nil))
	if got := must(t, exitError, "batch", "list"); !strings.Contains(got.errors,
		"TIDEFILL_API_KEY") {
		t.Errorf("without a key: %s", got.errors)
	}
	t.Setenv("TIDEFILL_API_KEY", "secret-a")
	id := idOf(t, must(t, exitOK, "batch", "submit", writeFile(t, "in.jsonl", batchLines(1)),
		"--wait", "--json").out)
	must(t, exitError, "batch", "get", id, "--api-key", "secret-b")
}

func TestWatchOutlastsARestart(t *testing.T) {
	data := t.TempDir()
	d, stop := startDaemon(t, data, startHanging(t, nil))
	id := idOf(t, must(t, exitOK, "batch", "submit", writeFile(t, "in.jsonl", batchLines(5)),
		"--json").out)
	said, out := io.Pipe()
	watched := make(chan int, 1)
	go func() {
		watched <- run(t.Context(), []string{"batch", "watch", id}, nil, out, t.Output())
		out.Close()
	}()
	lines := bufio.NewReader(said)
	if _, err := lines.ReadString('\n'); err != nil { // it has begun
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	stop()
	cfg := d.cfg
	cfg.Listen = d.listener.Addr().String()
	cfg.Upstreams[0].URL = startRunner(t, nil)
	runDaemonUntilEnd(t, cfg, nil)
	if status := <-watched; status != exitOK {
		t.Errorf("watch ended with status %d", status)
	}
}

func TestDelayLetsRoutesChange(t *testing.T) {
	cfg := testConfig(t.TempDir(), startRunner(t, nil))
	cfg.Shutdown.Delay = time.Hour
	d, err := openDaemon(t.Context(), cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	failing, fail := context.WithCancel(t.Context())
	waited := make(chan struct{})
	go func() {
		d.awaitEnd(ctx, failing)
		close(waited)
	}()
	if d.draining.Load() {
		t.Error("draining before the end")
	}
	cancel()
	for !d.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	select {
	case <-waited:
		t.Error("the delay was skipped")
	default:
	}
	fail() // a broken daemon has nothing to wait for
	<-waited
	if err := d.close(); err != nil {
		t.Error(err)
	}
}

func TestOneFailingPartEndsAll(t *testing.T) {
	d, err := openDaemon(t.Context(), testConfig(t.TempDir(), startRunner(t, nil)), nil,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.listener.Close()
	if err := d.run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "api server: ") {
		t.Errorf("run ended with %v, want the error of the API's server", err)
	}
	if _, err := net.Dial("tcp", d.adminListener.Addr().String()); err == nil {
		t.Error("the admin server goes on")
	}
}

func TestOneDaemonPerNode(t *testing.T) {
	data := t.TempDir()
	startDaemon(t, data, startRunner(t, nil))
	cfg := testConfig(data)
	if _, err := openDaemon(t.Context(), cfg, nil, newLogger(cfg.Log, t.Output())); err == nil ||
		!strings.Contains(err.Error(), "node name") {
		t.Errorf("a second daemon of the same node: %v", err)
	}
}

// startProcess runs the program itself and returns it with the URL that it says it serves.
func startProcess(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	p := exec.Command(os.Args[0], args...)
	p.Env = append(os.Environ(), asMain+"=1")
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	url := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if m := regexp.MustCompile(`msg=serving url=(\S+)`).FindStringSubmatch(
				lines.Text()); m != nil {
				url <- m[1]
			}
		}
		close(url)
	}()
	select {
	case u, ok := <-url:
		if !ok {
			t.Fatal("the process ended without serving")
		}
		return p, u
	case <-time.After(20 * time.Second):
		t.Fatal("the process doesn't serve")
	}
	return nil, ""
}

func TestSignals(t *testing.T) {
	input := writeFile(t, "in.jsonl", batchLines(5))
	working := func(t *testing.T, drain string) *exec.Cmd {
		received := make(chan struct{}, 1)
		p, url := startProcess(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen",
			"127.0.0.1:0", "--data", t.TempDir(),
			"--upstream", startHanging(t, received), "--set", "shutdown.drain="+drain)
		must(t, exitOK, "batch", "submit", input, "--server", url)
		<-received
		return p
	}

	t.Run("one drains", func(t *testing.T) {
		p := working(t, "50ms")
		p.Process.Signal(syscall.SIGTERM)
		if err := p.Wait(); err != nil {
			t.Errorf("after SIGTERM: %v", err)
		}
	})
	t.Run("two end at once", func(t *testing.T) {
		p := working(t, "1h")
		p.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- p.Wait() }()
		// the first must have been taken before the second is sent
		for again := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ended:
				if p.ProcessState.Success() {
					t.Error("a second signal ended the process as if it had drained")
				}
				return
			case <-again.C:
				p.Process.Signal(syscall.SIGTERM)
			}
		}
	})
}

func TestDemoOnce(t *testing.T) {
	got := must(t, exitOK, "demo", "--once", "--lines", "9", "--speedup", "100", "--listen",
		"127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data", t.TempDir())
	for _, want := range []string{"9/9 (100%)", "9 done, 0 failed", "_output.jsonl", "label-0001"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("demo lacks %q:\n%s", want, got.out)
		}
	}
}
