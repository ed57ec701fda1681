package dispatch_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store"
)

func TestHeadersSentToUpstreams(t *testing.T) {
	for name, c := range map[string]struct {
		upstream dispatch.Upstream
		want     map[string]string
	}{
		"by default": {dispatch.Upstream{}, map[string]string{"X-Priority": "low"}},
		"beside configured ones": {dispatch.Upstream{Headers: map[string]string{"X-Team": "a"}},
			map[string]string{"X-Priority": "low", "X-Team": "a"}},
		"in place of a default": {dispatch.Upstream{Headers: map[string]string{"x-priority": "5"}},
			map[string]string{"X-Priority": "5"}},
		"without a default": {dispatch.Upstream{Headers: map[string]string{"X-Priority": ""}},
			map[string]string{}},
		"with the tenant": {dispatch.Upstream{TenantHeader: "x-tenant-id"},
			map[string]string{"X-Priority": "low", "X-Tenant-Id": "research"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			got := map[string]string{}
			up := serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				for key := range r.Header {
					if key == "X-Priority" || strings.Contains(key, "T") && key != "Content-Type" {
						got[key] = r.Header.Get(key)
					}
				}
				w.Write([]byte(okBody))
			}, "m")
			w := newWorld(t)
			c.upstream.URL = up.URL
			w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) {
				d.Upstreams = []dispatch.Upstream{c.upstream}
			})
			w.awaitEnd(w.submit(chatLines(1, "m"), func(b *store.Batch) { b.Tenant = "research" }))
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

// The URL of an endpoint is refused, and one with a query, whose text is not shown.
func TestURLsOfUpstreams(t *testing.T) {
	for url, want := range map[string]string{
		"http://h:1/v1/chat/completions":        "ends in /v1/chat/completions",
		"http://h:1/v1/chat/completions/":       "ends in /v1/chat/completions",
		"http://h:1/a/v1/completions":           "ends in /v1/completions",
		"http://h:1/chat/completions":           "ends in /v1/chat/completions",
		"http://u:secret@h:1/v1/embeddings":     "ends in /v1/embeddings",
		"http://h:1/v1/responses":               "ends in /v1/responses",
		"http://h:1/v1/rerank":                  "ends in /v1/rerank",
		"http://h:1/v1/score":                   "ends in /v1/score",
		"http://h:1?key=secret":                 "has a query or a fragment",
		"http://h:1/v1/completions?key=secret":  "has a query or a fragment",
		"http://h:1/v1#secret":                  "has a query or a fragment",
		"http://h:1":                            "",
		"http://h:1/":                           "",
		"http://h:1/v1":                         "",
		"http://u:secret@h:1/v1/":               "",
		"https://h/v1/account/gateway/openai":   "",
		"https://h/rerank":                      "",
		"https://h/embeddings/v1":               "",
		"https://h/openai/deployments/score-v1": "",
	} {
		err := dispatch.Upstream{URL: url}.Validate()
		switch {
		case want == "" && err != nil:
			t.Errorf("%s is refused: %v", url, err)
		case want == "":
		case err == nil || !strings.Contains(err.Error(), "url: "+want) ||
			!strings.Contains(err.Error(), "write the base, such as http://host:port") ||
			strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: got %v, want an error with %q that hides secrets", url, err, want)
		}
	}
}

func TestInvalidHeadersAreRefused(t *testing.T) {
	for name, u := range map[string]dispatch.Upstream{
		"tenant_header": {URL: "http://h", TenantHeader: "X Tenant"},
		"headers":       {URL: "http://h", Headers: map[string]string{"X-Ok": "a\nb"}},
	} {
		_, err := dispatch.New(dispatch.DefaultConfig(), dispatch.Deps{
			Store:     newWorld(t).store(),
			Upstreams: []dispatch.Upstream{u}, Scheduler: scheduler.DefaultConfig(),
			Registry: registry.New(nil, flowcontrol.DefaultConfig()), Logger: slog.Default(),
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
}

// An upstream that invents other names in every answer costs a bounded amount of memory, here and
// on the page of metrics.
func TestModelsOfAnUpstreamAreLimited(t *testing.T) {
	var requests events
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			w.Write([]byte(okBody))
			return
		}
		request := requests.add()
		io.WriteString(w, `{"data":[{"id":"m"}`)
		for i := range 1200 {
			fmt.Fprintf(w, `,{"id":"%s-%d-%d"}`, strings.Repeat("invented", 20), request, i)
		}
		io.WriteString(w, `]}`)
	}))
	t.Cleanup(up.Close)
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	d, _ := w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
		c.ModelsEvery, d.Registerer = time.Millisecond, registry
	}, up.URL)
	heapAfter := func(n int) uint64 {
		t.Helper()
		requests.await(t, n)
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heapAfter(15)
	after := heapAfter(60)
	if after > before+8<<20 {
		t.Errorf("45 lists of 1200 names took %d MiB", (after-before)>>20)
	}
	if models := d.Models(); len(models) > 1000 || models[len(models)-1].ID != "m" {
		t.Errorf("%d models are known, want 1000 with the first of the list", len(models))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	page := 0
	for _, f := range families {
		page += len(f.String())
	}
	if page > 100_000 {
		t.Errorf("the page of metrics has about %d bytes", page)
	}
	if b := w.awaitEnd(w.submit(chatLines(50, "m"), nil)); b.Counts.Completed != 50 {
		t.Errorf("got %+v, want 50 lines completed", b.Counts)
	}
}
