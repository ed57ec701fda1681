package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/runner"
)

// saying is a runner of the Model Runner API whose capabilities a test sets. It notes what else was
// requested of it.
type saying struct {
	mu        sync.Mutex
	status    int
	body      string
	requested []string
}

func (s *saying) say(status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.body = status, body
}

func (s *saying) wasAsked(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.requested, path)
}

func (s *saying) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requested = append(s.requested, r.URL.Path)
	switch {
	case r.URL.Path == runner.CapabilitiesPath:
		w.WriteHeader(s.status)
		io.WriteString(w, s.body)
	case r.Method == http.MethodPost:
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,`+
			`"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],`+
			`"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// What a runner says of itself stops its lines under every policy, from the first answer on. Nobody
// reads its metrics for that.
func TestCapabilitiesStopLinesUnderEveryPolicy(t *testing.T) {
	healthy := `{"health":"healthy","models":{"loaded":[{"id":"m"}]}}`
	policies := []string{"aimd", "fixed", "unlimited"}
	stops := map[string]struct {
		status int
		body   string
	}{
		"starting":         {http.StatusServiceUnavailable, ""},
		"unhealthy":        {http.StatusOK, `{"health":"unhealthy"}`},
		"queue_full":       {http.StatusOK, `{"queue":{"depth":16,"maxDepth":16}}`},
		"kv_full":          {http.StatusOK, `{"resources":{"kvCacheUtilization":0.97}}`},
		"model_not_loaded": {http.StatusOK, `{"models":{"loading":[{"id":"m"}]}}`},
	}
	for _, policy := range policies {
		if flowcontrol.NeedsOf(policy).Readings {
			t.Errorf("%s reads metrics, so it shows nothing here", policy)
		}
		for reason, stop := range stops {
			if policy != "fixed" && reason != "starting" {
				continue // what counts as a stop does not depend on the policy
			}
			t.Run(policy+"/"+reason, func(t *testing.T) {
				t.Parallel()
				s := &saying{}
				s.say(stop.status, stop.body)
				server := httptest.NewServer(s)
				t.Cleanup(server.Close)
				cfg := apptest.Config(t.TempDir(), server.URL)
				cfg.Upstreams[0].Models = []string{"m"}
				cfg.FlowControl.Policy = policy
				cfg.Telemetry.CapabilitiesEvery = 20 * time.Millisecond
				registry := prometheus.NewRegistry()
				daemon, _ := apptest.Start(t, cfg, app.Options{Registry: registry})
				awaitStop(t, daemon, reason)
				c, batch := apptest.Submit(t, daemon, 5)
				w := &watched{t: t, registry: registry}
				w.await("that the batch waits", 20*time.Second, func() bool {
					b, err := c.Batch(t.Context(), batch.ID)
					if err != nil {
						t.Fatal(err)
					}
					return strings.HasPrefix(b.Tidefill.Waiting, reason)
				})
				if s.wasAsked("/v1/chat/completions") {
					t.Error("a line was sent")
				}
				s.say(http.StatusOK, healthy)
				w.await("the end of the batch", 20*time.Second, func() bool {
					b, err := c.Batch(t.Context(), batch.ID)
					return err == nil && b.Counts.Completed == 5
				})
				if s.wasAsked("/metrics") {
					t.Error("metrics were read that nobody uses")
				}
			})
		}
	}
}

// awaitStop waits until the daemon's only runner is stopped for a reason.
func awaitStop(t *testing.T, daemon *app.App, reason string) {
	t.Helper()
	admin, err := client.New(daemon.AdminURL(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	var last client.PoolList
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		if last, err = admin.Pools(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, pool := range last.Data {
			if all := pool.Decision.Runners; len(all) == 1 && all[0].Reason == reason {
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("the runner is not stopped for %s: %s", reason, last.Raw)
}
