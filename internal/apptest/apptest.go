// Package apptest runs daemons and emulated runners in the process of a test, on free ports.
package apptest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/runner/emulator"
)

// StartRunner serves an emulated runner of the model "m" until the test ends. By default it answers
// every request at once; edit, if not nil, changes its configuration.
func StartRunner(t *testing.T, edit func(*emulator.Config)) (url string) {
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

// Config returns the configuration of a daemon on free ports, with its data in the given directory.
// Requests in progress have 100 ms to finish when it stops.
func Config(directory string, upstreams ...string) config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.AdminListen, cfg.Data, cfg.Node = "127.0.0.1:0", "127.0.0.1:0", directory,
		"test"
	cfg.Shutdown.Drain = 100 * time.Millisecond
	cfg.FlowControl.Policy = "fixed" // the default first watches a pool for some seconds
	for _, url := range upstreams {
		cfg.Upstreams = append(cfg.Upstreams, dispatch.Upstream{URL: url})
	}
	return cfg
}

// Start runs a daemon and returns it when it is ready. The daemon runs until stop is called or the
// test ends. If it returns an error, the test fails.
func Start(t *testing.T, cfg config.Config, options app.Options) (a *app.App, stop func()) {
	t.Helper()
	ready := make(chan struct{})
	options.Ready = func() { close(ready) }
	if options.Logger == nil {
		options.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	a, err := app.New(cfg, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run the daemon: %v", err)
		}
	})
	select {
	case <-ready:
		t.Cleanup(stop)
	case err := <-ended:
		cancel()
		t.Fatalf("the daemon stopped before it was ready: %v", err)
	}
	return a, stop
}

// BatchFile returns a batch file of n lines for the model "m".
func BatchFile(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"line-%d","method":"POST","url":"/v1/chat/completions",`+
			`"body":{"model":"m","messages":[{"role":"user","content":"%d"}],"max_tokens":3}}`+"\n",
			i, i)
	}
	return b.String()
}
