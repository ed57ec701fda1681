//go:build unix

package app_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	tests3 "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/cluster"
)

// The start waits while PostgreSQL or the bucket is away, says why, and goes on when it is back.
func TestStartWaitsForTheStore(t *testing.T) {
	server := testpostgres.Start(t)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(testpostgres.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	settings := cluster.DefaultConfig()
	settings.Metadata.URL = fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable",
		testpostgres.User, server.Port, server.NewDatabase(t))
	settings.Metadata.PasswordFile = password
	objects := tests3.Start(t)
	settings.Objects.Endpoint, settings.Objects.Bucket = objects.URL, tests3.Bucket
	settings.Objects.PathStyle = true
	settings.Objects.AccessKeyFile, settings.Objects.SecretKeyFile = tests3.Secrets(t)
	cfg.Store.Backend, cfg.Store.Settings = cluster.Name, store.BackendSettings{
		cluster.Name: settings}
	for name, away := range map[string]func() (back func()){
		"PostgreSQL": func() func() {
			server.Kill(t)
			return func() { server.Restart(t) }
		},
		"the bucket": func() func() {
			objects.Kill()
			return func() {
				if err := objects.Resume(); err != nil {
					t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) { startWhileAway(t, cfg, away()) })
	}

	if err := os.WriteFile(password, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(cfg, app.Options{}); err == nil ||
		!strings.Contains(err.Error(), "the server refuses the user") {
		t.Errorf("with a wrong password: %v", err)
	}
}

// startWhileAway starts a daemon that asks for a server which is away, until back is called.
func startWhileAway(t *testing.T, cfg config.Config, back func()) {
	var listeners [2]net.Listener
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i] = l
	}
	started := make(chan struct{})
	go func() {
		defer close(started)
		defer back()
		get := func(l net.Listener, path string) (*http.Response, string) {
			for {
				r, err := http.Get("http://" + l.Addr().String() + path)
				if err != nil {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				body, _ := io.ReadAll(r.Body)
				r.Body.Close()
				return r, string(body)
			}
		}
		r, body := get(listeners[1], "/readyz")
		if r.StatusCode != 503 || !strings.Contains(body, "the store: ") {
			t.Errorf("/readyz: %d %s", r.StatusCode, body)
		}
		r, body = get(listeners[0], "/v1/batches")
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" ||
			!strings.Contains(body, `"code":"store_unavailable"`) {
			t.Errorf("/v1/batches: %d %s", r.StatusCode, body)
		}
	}()
	a, stop := apptest.Start(t, cfg, app.Options{Listener: listeners[0],
		AdminListener: listeners[1]})
	<-started
	if r, err := http.Get(a.URL() + "/v1/models"); err != nil || r.StatusCode != 200 {
		t.Errorf("after the start: %v, %v", r, err)
	}
	stop()
}
