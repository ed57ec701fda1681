package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// provider is a server elsewhere that wants a key.
type provider struct {
	*Stub
	key     atomic.Pointer[string] // nil: none is wanted
	refused atomic.Int64

	mu    sync.Mutex
	paths map[string]int // requests by path
}

func newProvider(t *testing.T) *provider {
	p := &provider{Stub: NewStub(t, "m"), paths: map[string]int{}}
	p.Intercept(func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		p.mu.Lock()
		p.paths[r.URL.Path]++
		p.mu.Unlock()
		if key := p.key.Load(); key != nil && r.Header.Get("Authorization") != "Bearer "+*key {
			p.refused.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"bad key","type":"invalid_request_error",`+
				`"param":null,"code":"invalid_api_key"}}`)
			return true
		}
		return false
	})
	return p
}

// want sets the key that the server takes.
func (p *provider) want(key string) { p.key.Store(&key) }

// external returns an external template with more members of its provider_config.
func external(name, url, members string) string {
	return templateOf(name, "active", "external",
		fmt.Sprintf("{type: external, base_url: %q%s}", url, members))
}

// newExternal starts a daemon with templates, and no runner of its own.
func newExternal(t *testing.T, templates ...string) (*Daemon, *openai.Client) {
	t.Helper()
	dir := newRegistryDir(t)
	dir.write("templates.yaml", strings.Join(templates, ""))
	return serveExternal(t, dir)
}

// serveExternal starts a daemon with the templates of a directory, and no runner of its own.
func serveExternal(t *testing.T, dir *registryDir) (*Daemon, *openai.Client) {
	t.Helper()
	d := NewDaemon(t, Options{Upstreams: []string{NewStub(t, "other").URL}, Keys: "own=" + ownKey,
		Admin: freeAddress(t), Set: []string{"registry.dir=" + dir.path}})
	return d, sdk(d, ownKey, option.WithMaxRetries(0))
}

// No more requests are sent than the provider grants per minute, in any window of 20 seconds. The
// base_url may end with /v1.
func TestExternalTemplateKeepsToItsBudget(t *testing.T) {
	t.Parallel()
	limited, loose := newProvider(t), newProvider(t)
	d, c := newExternal(t, external("limited", limited.URL, ", requests_per_minute: 120"),
		external("loose", loose.URL+"/v1", ""))
	lines, others := NewLines("limited", "m", 46), NewLines("loose", "m", 46)
	b := createIn(t, c, lines, naming("limited"))
	other := createIn(t, c, others, naming("loose"))
	d.Client().CheckComplete(t, endOf(t, d, other.ID), others)
	d.Client().CheckComplete(t, endOf(t, d, b.ID), lines)
	sent := limited.AttemptList(Lines{})
	const window, granted = 20 * time.Second, 42
	for i, first := range sent {
		n := len(sent) - i - len(sent.After(first.Begin.Add(window)))
		if n > granted {
			t.Errorf("%d requests were sent within 20s, want at most %d", n, granted)
			break
		}
	}
	if took := sent[len(sent)-1].Begin.Sub(sent[0].Begin); took > 30*time.Second ||
		took < window {
		t.Errorf("46 requests were sent within %v, want about 22s", took)
	}
	if took := endedAfter(loose.AttemptList(Lines{})); took > 15*time.Second {
		t.Errorf("46 requests without a budget were sent within %v", took)
	}
	for name, p := range map[string]*provider{"limited": limited, "loose": loose} {
		if n := p.paths["/v1/chat/completions"]; n != 46 || len(p.paths) != 1 {
			t.Errorf("%s: requests by path: %v", name, p.paths)
		}
		if n := p.pages.Load(); n > 0 {
			t.Errorf("%s: %d pages were asked for, which its provider counts", name, n)
		}
	}
}

// endedAfter returns the time from the first attempt to the last.
func endedAfter(f AttemptList) time.Duration { return f[len(f)-1].Begin.Sub(f[0].Begin) }

// A budget that is changed holds for the server, and so for the batches that it has already.
func TestExternalTemplateBudgetChanges(t *testing.T) {
	t.Parallel()
	p, dir := newProvider(t), newRegistryDir(t)
	grant := func(perMinute int) {
		dir.write("templates.yaml", external("changing", p.URL,
			fmt.Sprintf(", requests_per_minute: %d", perMinute)))
	}
	grant(1200)
	d, c := serveExternal(t, dir)
	createIn(t, c, NewLines("before", "m", 400), naming("changing"))
	await(t, 10*time.Second, "lines are sent", func() bool { return p.Requests() > 5 })
	grant(60)
	await(t, 10*time.Second, "the new budget is in force", func() bool {
		return strings.Contains(readText(t, d, "/admin/registry"), "requests_per_minute: 60") ||
			strings.Contains(readText(t, d, "/admin/registry"), `"requests_per_minute":60`)
	})
	createIn(t, c, NewLines("after", "m", 40), naming("changing"))
	// A second for the daemon to apply it.
	from := time.Now().Add(time.Second)
	await(t, 20*time.Second, "lines are sent for 6s more", func() bool {
		return len(p.AttemptList(Lines{}).After(from.Add(6*time.Second))) > 0
	})
	sent := p.AttemptList(Lines{}).After(from)
	if n := len(sent) - len(sent.After(from.Add(6*time.Second))); n > 8 {
		t.Errorf("%d requests were sent within 6s, want at most 8", n)
	}
}

// Lines wait while the file with the key is missing or has a key that the server refuses. None of
// them fails, users and operators see why, and a file that is written or changed counts at once.
func TestExternalTemplateKeyFile(t *testing.T) {
	t.Parallel()
	p, file := newProvider(t), filepath.Join(t.TempDir(), "key")
	p.want("sk-second")
	d, c := newExternal(t, external("rented", p.URL, fmt.Sprintf(", api_key_file: %q", file)))
	client := d.Client()
	lines := NewLines("rented", "m", 12)
	b := createIn(t, c, lines, naming("rented"))
	client.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
		return b.Tidefill.Waiting != nil && strings.Contains(*b.Tidefill.Waiting, "key")
	})
	await(t, 10*time.Second, "/readyz names the key", func() bool {
		return slices.ContainsFunc(d.Readiness(t).Degraded, func(s string) bool {
			return strings.Contains(s, "rented") && strings.Contains(s, file)
		})
	})
	if n := p.Requests(); n > 0 {
		t.Errorf("%d requests were sent without a key", n)
	}
	write := func(key string) {
		if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sk-first")
	client.Await(t, b.ID, 20*time.Second, func(b Batch) bool {
		return b.WaitsFor("runners_failing") && strings.Contains(*b.Tidefill.Waiting, "401")
	})
	await(t, 10*time.Second, "/readyz names the refusal", func() bool {
		return slices.ContainsFunc(d.Readiness(t).Degraded, func(s string) bool {
			return strings.Contains(s, "rented") && strings.Contains(s, "401")
		})
	})
	write("sk-second")
	client.CheckComplete(t, endOf(t, d, b.ID), lines)
	if n := p.refused.Load(); n == 0 || n > 30 {
		t.Errorf("%d requests were sent with the wrong key", n)
	}
	for _, key := range []string{"sk-first", "sk-second"} {
		if strings.Contains(d.Log(), key) || strings.Contains(readText(t, d, "/readyz"), key) {
			t.Errorf("the log or /readyz has the key %s", key)
		}
	}
}

// readText returns a page of the address for administration.
func readText(t *testing.T, d *Daemon, path string) string {
	t.Helper()
	answer, err := (&Client{URL: "http://" + d.Admin, HTTP: http.DefaultClient}).Do("GET", path,
		"", nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer.Body)
}

// A server that asks for a pause gets no request before its end, and the line is not charged.
func TestExternalTemplateKeepsRetryAfter(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	var sheds atomic.Int64
	stub.Intercept(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if stub.Requests() < 6 || sheds.Add(1) > 3 {
			return false
		}
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusTooManyRequests)
		return true
	})
	d, c := newExternal(t, external("busy", stub.URL, ""))
	lines := NewLines("busy", "m", 12)
	b := endIn(t, d, c, lines, naming("busy"),
		option.WithJSONSet("tidefill.max_concurrency", 1),
		option.WithJSONSet("tidefill.retry.attempts", 1))
	d.Client().CheckComplete(t, b, lines)
	sent := stub.AttemptList(Lines{})
	if len(sent) != 15 {
		t.Fatalf("%d requests were sent, want 15", len(sent))
	}
	for i := 5; i < 8; i++ {
		if pause := sent[i+1].Begin.Sub(sent[i].End); pause < 2*time.Second ||
			pause > 6*time.Second {
			t.Errorf("the pause after the 429 number %d was %v, want 2s", i-4, pause)
		}
	}
}
