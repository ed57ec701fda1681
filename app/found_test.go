package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/registry"
)

// findsRunners returns a daemon with a pool in Kubernetes, whose runners are found by calls.
func findsRunners(t *testing.T, edit func(*config.Config)) *App {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.AdminListen, cfg.Data, cfg.Node = "127.0.0.1:0", "127.0.0.1:0", t.TempDir(),
		"test"
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "p", Models: []string{"m"},
		Max: 4}}}
	edit(&cfg)
	a, err := New(cfg, Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	go func() {
		for {
			select {
			case <-a.readers:
			case <-t.Context().Done():
				return
			}
		}
	}()
	cfg.Pools[0].Kubernetes.Selector = "app=vllm" // there is no API server
	a.running.Store(&cfg)
	cluster, err := kube.New(cfg.Kubernetes, nil, kube.Deps{Node: cfg.Node, Logger: a.log,
		Registerer: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	a.kubernetes = &kubernetes{changed: make(chan struct{}, 1), cluster: cluster,
		found: map[string][]kube.Runner{"p": {{Name: "a", Pod: "a", URL: "http://127.0.0.1:1",
			Phase: autoscale.Ready}}}}
	return a
}

func writeFile(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A keys file that was broken after the start changes nothing, for found runners neither.
func TestFoundRunnersDoNotNeedTheKeysFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.yaml")
	writeFile(t, file, "keys: [{hash: "+api.HashKey("a key")+", tenant: a}]\n")
	a := findsRunners(t, func(c *config.Config) { c.Auth.KeysFile = file })
	writeFile(t, file, "keys: [")
	a.found.come()
	a.applyFound(t.Context())
	if got := len(a.effective.Upstreams); got != 1 {
		t.Errorf("%d upstreams, want the one that was found", got)
	}
}

// Found runners that can't be used now are used as soon as they can.
func TestFoundRunnersAreTriedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "signals.yaml")
	a := findsRunners(t, func(*config.Config) {})
	running := *a.running.Load()
	running.Telemetry.Signals = file
	a.running.Store(&running)
	a.found.come()
	a.applyFound(t.Context())
	if got := len(a.effective.Upstreams); got != 0 {
		t.Fatalf("%d upstreams without the signals file, want none", got)
	}
	built, err := os.ReadFile("../telemetry/signals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, string(built))
	a.applyFound(t.Context())
	if got := len(a.effective.Upstreams); got != 1 {
		t.Errorf("%d upstreams once the file is there, want the one that was found", got)
	}
}

// A reason that stays the same is logged once, though runners are found again and again.
func TestRefusedRunnersAreLoggedOnce(t *testing.T) {
	a := findsRunners(t, func(*config.Config) {})
	var log strings.Builder
	a.log = slog.New(slog.NewTextHandler(&log, nil))
	running := *a.running.Load()
	running.Telemetry.Signals = filepath.Join(t.TempDir(), "missing")
	a.running.Store(&running)
	for range 3 {
		a.found.come()
		a.applyFound(t.Context())
	}
	if n := strings.Count(log.String(), "can't be used"); n != 1 {
		t.Errorf("%d log lines, want 1: %s", n, log.String())
	}
}
