package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/runner/emulator"
)

// asMain makes the test binary behave as the program, for tests that need a process.
const asMain = "TIDEFILL_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// outcome is what a command left behind.
type outcome struct {
	status      int
	out, errors string
}

// command runs the program in process.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	return commandWith(t, "", args...)
}

func commandWith(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var out, errors bytes.Buffer
	status := run(t.Context(), args, strings.NewReader(stdin), &out, &errors)
	return outcome{status, out.String(), errors.String()}
}

// must is command with a known status.
func must(t *testing.T, status int, args ...string) outcome {
	t.Helper()
	got := command(t, args...)
	if got.status != status {
		t.Fatalf("tidefill %s: status %d, want %d\nout: %s\nerrors: %s", strings.Join(args, " "),
			got.status, status, got.out, got.errors)
	}
	return got
}

// startRunner serves an emulated runner until the test ends.
func startRunner(t *testing.T, edit func(*emulator.Config)) (url string) {
	t.Helper()
	c := emulator.DefaultConfig()
	c.Profile = emulator.Instant
	c.Models = []string{"m"}
	if edit != nil {
		edit(&c)
	}
	r, err := emulator.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(r.Handler())
	t.Cleanup(server.Close)
	return server.URL
}

// startDaemon runs a daemon without keys on free ports over the data directory, and makes it the
// one that commands talk to. It is stopped by the returned function or with the test.
func startDaemon(t *testing.T, data string, upstreams ...string) (d *daemon, stop func()) {
	t.Helper()
	return startDaemonWith(t, data, nil, upstreams...)
}

func startDaemonWith(
	t *testing.T, data string, keys *api.Keyring, upstreams ...string,
) (d *daemon, stop func()) {
	t.Helper()
	d, stop = runDaemonUntilEnd(t, testConfig(data, upstreams...), keys)
	t.Setenv("TIDEFILL_SERVER", d.url())
	return d, stop
}

// testConfig is a daemon on free ports that doesn't wait long for its end.
func testConfig(data string, upstreams ...string) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.AdminListen, cfg.Data, cfg.Node = "127.0.0.1:0", "127.0.0.1:0", data, "test"
	cfg.Shutdown.Drain = 100 * time.Millisecond
	for _, url := range upstreams {
		cfg.Upstreams = append(cfg.Upstreams, dispatch.Upstream{URL: url})
	}
	return cfg
}

// runDaemonUntilEnd returns when the daemon is ready.
func runDaemonUntilEnd(
	t *testing.T, cfg config.Config, keys *api.Keyring,
) (d *daemon, stop func()) {
	t.Helper()
	d, err := openDaemon(t.Context(), cfg, keys, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("daemon ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	if err := awaitReady(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return d, stop
}

// batchLines is a batch file of n lines for the model m.
func batchLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(
			&b, `{"custom_id":"line-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"%d"}],"max_tokens":3}}`+"\n", i, i)
	}
	return b.String()
}

// writeFile puts content into a file of the test's own.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// idOf reads the id of the object that a command printed.
func idOf(t *testing.T, printed string) string {
	t.Helper()
	var object struct{ ID string }
	if err := json.Unmarshal([]byte(printed), &object); err != nil || object.ID == "" {
		t.Fatalf("no object with an id: %s", printed)
	}
	return object.ID
}

func get(t *testing.T, url string) (status int) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}
