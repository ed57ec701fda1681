package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
)

// start runs a daemon without keys over an emulated runner.
func start(t *testing.T) *app.App {
	t.Helper()
	a, _ := apptest.Start(t, apptest.Config(t.TempDir(), apptest.StartRunner(t, nil)),
		app.Options{})
	return a
}

// send sends a request and returns the status of the answer. header has pairs of names and values,
// Host among them.
func send(t *testing.T, method, url, body string, header ...string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

func get(t *testing.T, url string) (status int) {
	t.Helper()
	return send(t, http.MethodGet, url, "")
}

func TestAdminRoutes(t *testing.T) {
	a := start(t)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/debug/pprof/",
		"/debug/pprof/heap", "/console", "/admin/pools", "/admin/batches"} {
		if status := get(t, a.AdminURL()+path); status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if status := get(t, a.URL()+"/metrics"); status != http.StatusNotFound {
		t.Errorf("the API serves /metrics: status %d", status)
	}
}

func TestOneFailingPartEndsAll(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(apptest.Config(t.TempDir(), apptest.StartRunner(t, nil)),
		app.Options{Listener: listener})
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := a.Run(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "api server: ") {
		t.Errorf("Run ended with %v, want the error of the API's server", err)
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(a.AdminURL(), "http://")); err == nil {
		t.Error("the admin server still serves")
	}
}

func TestOneDaemonPerNode(t *testing.T) {
	data := t.TempDir()
	apptest.Start(t, apptest.Config(data, apptest.StartRunner(t, nil)), app.Options{})
	if _, err := app.New(apptest.Config(data), app.Options{}); err == nil ||
		!strings.Contains(err.Error(), "node name") {
		t.Errorf("a second daemon of the same node: %v", err)
	}
}

func TestKeysAreRequiredBeyondLoopback(t *testing.T) {
	cfg := apptest.Config(t.TempDir())
	cfg.Listen = "0.0.0.0:0"
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		t.Fatal(err)
	}
	for _, options := range []app.Options{{}, {Listener: listener}} {
		if _, err := app.New(cfg, options); err == nil ||
			!strings.Contains(err.Error(), "there are no API keys") {
			t.Errorf("an open address without keys: %v", err)
		}
		cfg.Listen = "127.0.0.1:0" // the listener's address counts
	}
	if _, err := listener.Accept(); err == nil {
		t.Error("New failed and left the given listener open")
	}
}

func TestInjectedListeners(t *testing.T) {
	var listeners [2]net.Listener
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Listen, cfg.AdminListen = "", ""
	a, _ := apptest.Start(t, cfg, app.Options{Listener: listeners[0],
		AdminListener: listeners[1], Logger: slog.New(slog.DiscardHandler)})
	if want := "http://" + listeners[0].Addr().String(); a.URL() != want {
		t.Errorf("URL is %s, want %s", a.URL(), want)
	}
	if status := get(t, a.AdminURL()+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: status %d", status)
	}
}

func TestDaemonsOfAProcessShareNoMetrics(t *testing.T) {
	start(t)
	start(t)
}

func TestNotReadyWhileDraining(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Shutdown.Delay = time.Hour
	ready := make(chan struct{})
	a, err := app.New(cfg, app.Options{Listener: listener, Ready: func() { close(ready) }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	<-ready
	cancel()
	awaitStatus(t, http.StatusServiceUnavailable, func() int {
		return get(t, a.AdminURL()+"/readyz")
	})
	var says struct {
		Waiting []string
		Roles   map[string]struct {
			Waiting []string
			State   string
		}
	}
	answer, err := http.Get(a.AdminURL() + "/readyz")
	if err == nil {
		err = errors.Join(json.NewDecoder(answer.Body).Decode(&says), answer.Body.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if why := []string{"shutting down"}; !slices.Equal(says.Waiting, why) || len(says.Roles) != 3 {
		t.Errorf("/readyz says %+v", says)
	}
	for role, r := range says.Roles {
		if r.State != "stopping" || !slices.Equal(r.Waiting, []string{"shutting down"}) {
			t.Errorf("the role %s is %+v", role, r)
		}
	}
	listener.Close() // a part that fails ends the delay
	if err := <-ended; err == nil {
		t.Error("Run hides the failure")
	}
}
