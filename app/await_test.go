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

// awaited is the configuration of a daemon with its records in PostgreSQL and its bytes in a
// bucket, and the listeners of the daemon.
type awaited struct {
	config    config.Config
	cluster   cluster.Config
	password  string // the file
	listeners [2]net.Listener
}

func newAwaited(t *testing.T, server *testpostgres.Server, bucket string) *awaited {
	t.Helper()
	a := &awaited{password: filepath.Join(t.TempDir(), "password")}
	if err := os.WriteFile(a.password, []byte(testpostgres.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	a.cluster = cluster.DefaultConfig()
	database := server.NewDatabase(t)
	a.cluster.Metadata.URL = fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable",
		testpostgres.User, server.Port, database)
	a.cluster.Metadata.PasswordFile = a.password
	if bucket != "" {
		a.cluster.Objects.Endpoint, a.cluster.Objects.Bucket = bucket, tests3.Bucket
		a.cluster.Objects.PathStyle, a.cluster.Objects.Prefix = true, database
		a.cluster.Objects.AccessKeyFile, a.cluster.Objects.SecretKeyFile = tests3.Secrets(t)
	}
	a.config = apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	a.config.Store.Backend = cluster.Name
	for i := range a.listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		a.listeners[i] = l
	}
	return a
}

// settings returns the configuration with the cluster's.
func (a *awaited) settings() config.Config {
	cfg := a.config
	cfg.Store.Settings = store.BackendSettings{cluster.Name: a.cluster}
	return cfg
}

// get waits for an answer of the listener.
func (a *awaited) get(t *testing.T, listener int, path string) (*http.Response, string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		20 * time.Millisecond) {
		r, err := http.Get("http://" + a.listeners[listener].Addr().String() + path)
		if err != nil {
			continue
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		return r, string(body)
	}
	t.Errorf("nobody answers %s", path)
	return &http.Response{}, ""
}

// checkWaits checks what a daemon answers while its start waits, for a reason with the words.
func (a *awaited) checkWaits(t *testing.T, words string) {
	t.Helper()
	if r, body := a.get(t, 1, "/healthz"); r.StatusCode != 200 {
		t.Errorf("/healthz: %d %s", r.StatusCode, body)
	}
	var r *http.Response
	var body string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if r, body = a.get(t, 1, "/readyz"); strings.Contains(body, words) {
			break
		}
	}
	if r.StatusCode != 503 || !strings.Contains(body, "the store: ") ||
		!strings.Contains(body, words) {
		t.Errorf("/readyz: %d %s, want %q", r.StatusCode, body, words)
	}
	r, body = a.get(t, 0, "/v1/batches")
	if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" ||
		!strings.Contains(body, `"code":"store_unavailable"`) {
		t.Errorf("/v1/batches: %d %s", r.StatusCode, body)
	}
}

// The start waits while PostgreSQL or the bucket is away, says why, and goes on when it is back.
func TestStartWaitsForTheStore(t *testing.T) {
	server, bucket := testpostgres.Start(t), tests3.Start(t)
	proxy := tests3.StartProxy(t, bucket)
	answers := func(fault tests3.Fault) func() (heal func()) {
		return func() func() {
			proxy.Choose(func(*http.Request) tests3.Fault { return fault })
			return func() { proxy.Choose(nil) }
		}
	}
	for _, test := range []struct {
		name, words string
		hit         func() (heal func())
	}{
		{"PostgreSQL killed", "store.cluster.metadata: ", func() func() {
			server.Kill(t)
			return func() { server.Restart(t) }
		}},
		{"PostgreSQL suspended", "has not answered", func() func() { return server.Suspend(t) }},
		{"bucket stopped", "store.cluster.objects: open bucket", func() func() {
			bucket.Kill()
			return func() {
				if err := bucket.Resume(); err != nil {
					t.Error(err)
				}
			}
		}},
		{"bucket answers SlowDown", "SlowDown", answers(tests3.SlowDown)},
		{"bucket stalls", "has not answered", answers(tests3.Stall)},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := proxy.URL
			if test.name == "bucket stopped" {
				url = bucket.URL
			}
			w := newAwaited(t, server, url)
			heal := test.hit()
			started := make(chan struct{})
			go func() {
				defer close(started)
				defer heal()
				w.checkWaits(t, test.words)
			}()
			a, stop := apptest.Start(t, w.settings(), app.Options{Listener: w.listeners[0],
				AdminListener: w.listeners[1]})
			<-started
			if r, err := http.Get(a.URL() + "/v1/batches"); err != nil || r.StatusCode != 200 {
				t.Errorf("after the start: %v, %v", r, err)
			}
			stop()
		})
	}
}

// A daemon that waits for a store which hangs ends soon when it is asked to.
func TestAStartThatWaitsCanBeStopped(t *testing.T) {
	server := testpostgres.Start(t)
	w := newAwaited(t, server, "")
	t.Cleanup(server.Suspend(t))
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := app.New(w.settings(), app.Options{Listener: w.listeners[0],
			AdminListener: w.listeners[1], Stop: stop})
		ended <- err
	}()
	w.checkWaits(t, "has not answered")
	close(stop)
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "stopped while") {
			t.Errorf("got %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the start goes on 5 s after it was stopped")
	}
}

// What only an operator can repair ends a start at once, with the remedy.
func TestStartRefusesWhatWaitingDoesNotRepair(t *testing.T) {
	server, bucket := testpostgres.Start(t), tests3.Start(t)
	w := newAwaited(t, server, bucket.URL)
	_, stop := apptest.Start(t, w.settings(), app.Options{})
	stop()
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("wrong-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, remedy string
		change       func(*cluster.Config)
		prepare      func(database string)
	}{
		{"password", "check the user in url, and password_env or password_file",
			func(c *cluster.Config) { c.Metadata.PasswordFile = wrong }, nil},
		{"database", "there is no such database; create it", func(c *cluster.Config) {
			c.Metadata.URL = strings.Replace(c.Metadata.URL, "/db", "/none", 1)
		}, nil},
		{"newer schema", "run the release that wrote it, or a later one", nil,
			func(database string) {
				server.Exec(t, database, "UPDATE schema_version SET version = version + 1")
			}},
		{"secret key of the bucket", "correct the credentials",
			func(c *cluster.Config) { c.Objects.SecretKeyFile = wrong }, nil},
		{"access key of the bucket", "correct the credentials",
			func(c *cluster.Config) { c.Objects.AccessKeyFile = wrong }, nil},
		{"bucket", "the bucket does not exist: create it",
			func(c *cluster.Config) { c.Objects.Bucket = "missing" }, nil},
		{"bucket of another cluster", "give each its own", func(c *cluster.Config) {
			c.Metadata.URL = strings.Replace(c.Metadata.URL, "/db1", "/"+server.NewDatabase(t), 1)
		}, nil},
		{"clock", "synchronise both", nil, func(database string) {
			server.Exec(t, database, `CREATE OR REPLACE FUNCTION tidefill_now() RETURNS bigint
				LANGUAGE sql AS 'SELECT (extract(epoch FROM clock_timestamp()
					- interval ''11 s'') * 1000000)::bigint'`)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := w.cluster
			if test.change != nil {
				test.change(&c)
			}
			if test.prepare != nil {
				test.prepare("db1")
				if test.name == "newer schema" {
					defer server.Exec(t, "db1",
						"UPDATE schema_version SET version = version - 1")
				}
			}
			cfg := w.config
			cfg.Data = t.TempDir()
			cfg.Store.Settings = store.BackendSettings{cluster.Name: c}
			began := time.Now()
			opened, err := app.New(cfg, app.Options{})
			if err == nil {
				opened.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.remedy) {
				t.Errorf("got %v, want %q", err, test.remedy)
			}
			for _, secret := range []string{"wrong-secret", testpostgres.Password,
				tests3.SecretKey} {
				if err != nil && test.name != "access key of the bucket" &&
					strings.Contains(err.Error(), secret) {
					t.Errorf("the error has a secret: %v", err)
				}
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it was refused after %v", took)
			}
		})
	}
}
