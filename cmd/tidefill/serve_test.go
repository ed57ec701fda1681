package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
)

// startHanging serves a runner that accepts every line and answers none. It sends to received for
// every line, if the channel has space.
func startHanging(t *testing.T, received chan<- struct{}) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			w.Write([]byte(`{"object":"list","data":[{"id":"m","object":"model"}]}`))
			return
		}
		if r.Method != http.MethodPost { // readings
			http.NotFound(w, r)
			return
		}
		io.Copy(io.Discard, r.Body) // the server notices a disconnect only after the body
		select {
		case received <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestRestartContinuesBatches(t *testing.T) {
	data, input := t.TempDir(), writeFile(t, "in.jsonl", apptest.BatchFile(40))

	_, stop := startDaemon(t, data, startHanging(t, nil))
	id := idOf(t, must(t, exitOK, "batch", "submit", input, "--json").out)
	stop() // lines in flight return to the queue after the drain time

	startDaemon(t, data, apptest.StartRunner(t, nil))
	must(t, exitOK, "batch", "watch", id)
	must(t, exitOK, "verify", id)
}

func TestKeysAreRequired(t *testing.T) {
	file := writeFile(t, "keys.yaml",
		"keys: [{hash: '"+api.HashKey("secret-b")+"', tenant: team-b}]\n")
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Listen, cfg.Auth.KeysFile = "0.0.0.0:0", file
	keys, err := api.ParseKeys("team-a=secret-a")
	if err != nil {
		t.Fatal(err)
	}
	startDaemonWith(t, cfg, app.Options{Keys: keys})
	if got := must(t, exitError, "batch", "list"); !strings.Contains(got.errors,
		"TIDEFILL_API_KEY") {
		t.Errorf("without a key: %s", got.errors)
	}
	t.Setenv("TIDEFILL_API_KEY", "secret-a")
	id := idOf(t, must(t, exitOK, "batch", "submit", writeFile(t, "in.jsonl", apptest.BatchFile(1)),
		"--wait", "--json").out)
	must(t, exitError, "batch", "get", id, "--api-key", "secret-b")
}

func TestWatchContinuesAfterARestart(t *testing.T) {
	data := t.TempDir()
	d, stop := startDaemon(t, data, startHanging(t, nil))
	id := idOf(t, must(t, exitOK, "batch", "submit", writeFile(t, "in.jsonl", apptest.BatchFile(5)),
		"--json").out)
	printed, out := io.Pipe()
	watched := make(chan int, 1)
	go func() {
		watched <- run(t.Context(), []string{"batch", "watch", id}, nil, out, t.Output())
		out.Close()
	}()
	rows := bufio.NewReader(printed)
	if _, err := rows.ReadString('\n'); err != nil { // it has begun
		t.Fatal(err)
	}
	go io.Copy(io.Discard, rows)
	stop()
	cfg := apptest.Config(data, apptest.StartRunner(t, nil))
	cfg.Listen = strings.TrimPrefix(d.URL(), "http://")
	startDaemonWith(t, cfg, app.Options{})
	if status := <-watched; status != exitOK {
		t.Errorf("watch ended with status %d", status)
	}
}

func TestTLSDaemon(t *testing.T) {
	dir := t.TempDir()
	authority := tlstest.NewAuthority(t)
	cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"),
		filepath.Join(dir, "ca.pem")
	authority.WriteCA(ca)
	authority.WritePair(cert, key)
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.TLS = httpserver.TLSConfig{CertFile: cert, KeyFile: key, ClientCAFile: ca}
	d, _ := startDaemonWith(t, cfg, app.Options{})
	if !strings.HasPrefix(d.URL(), "https://") || !strings.HasPrefix(d.AdminURL(), "https://") {
		t.Fatalf("serves %s and %s", d.URL(), d.AdminURL())
	}
	if got := must(t, exitError, "batch", "list"); !strings.Contains(got.errors,
		"TIDEFILL_CA_FILE") {
		t.Errorf("an unknown authority: %s", got.errors)
	}
	t.Setenv("TIDEFILL_CA_FILE", ca)
	must(t, exitError, "batch", "list") // without a certificate of its own
	own, ownKey := filepath.Join(dir, "own.pem"), filepath.Join(dir, "own.key")
	authority.WritePair(own, ownKey)
	must(t, exitOK, "batch", "submit", writeFile(t, "in.jsonl", apptest.BatchFile(3)), "--wait",
		"--cert-file", own, "--key-file", ownKey)
}

// startProcess runs the program in a process and returns the process with the URL that it serves.
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
		out := t.Output()
		for rows := bufio.NewScanner(stderr); rows.Scan(); {
			fmt.Fprintln(out, rows.Text())
			if m := regexp.MustCompile(`msg=serving url=(\S+)`).FindStringSubmatch(
				rows.Text()); m != nil {
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
		t.Fatal("the process does not serve")
	}
	return nil, ""
}

func TestSignals(t *testing.T) {
	input := writeFile(t, "in.jsonl", apptest.BatchFile(5))
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
	t.Run("two end the process at once", func(t *testing.T) {
		p := working(t, "1h")
		p.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- p.Wait() }()
		// the first must have been handled before the second is sent
		for again := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-ended:
				if p.ProcessState.Success() {
					t.Error("after a second signal the process ended with status 0")
				}
				return
			case <-again.C:
				p.Process.Signal(syscall.SIGTERM)
			}
		}
	})
}

func TestHangupReadsFilesAgain(t *testing.T) {
	keysFile := func(key string) string { return "keys: [{hash: '" + api.HashKey(key) + "'}]\n" }
	path := writeFile(t, "keys.yaml", keysFile("old-secret"))
	p, url := startProcess(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "",
		"--data", t.TempDir(),
		"--upstream", apptest.StartRunner(t, nil), "--set", "auth.keys_file="+path)
	if err := os.Rename(writeFile(t, "new.yaml", keysFile("new-secret")), path); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for command(t, "batch", "list", "--server", url, "--api-key", "new-secret").status != exitOK {
		if time.Now().After(deadline) {
			t.Fatal("the new key is refused")
		}
		time.Sleep(20 * time.Millisecond)
	}
}
