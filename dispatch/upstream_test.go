package dispatch_test

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store"
)

func TestHeadersThatUpstreamsGet(t *testing.T) {
	for name, c := range map[string]struct {
		upstream dispatch.Upstream
		want     map[string]string
	}{
		"by default":             {dispatch.Upstream{}, map[string]string{"X-Priority": "low"}},
		"beside configured ones": {dispatch.Upstream{Headers: map[string]string{"X-Team": "a"}}, map[string]string{"X-Priority": "low", "X-Team": "a"}},
		"in place of a default":  {dispatch.Upstream{Headers: map[string]string{"x-priority": "5"}}, map[string]string{"X-Priority": "5"}},
		"without a default":      {dispatch.Upstream{Headers: map[string]string{"X-Priority": ""}}, map[string]string{}},
		"with the tenant":        {dispatch.Upstream{TenantHeader: "x-tenant-id"}, map[string]string{"X-Priority": "low", "X-Tenant-Id": "research"}},
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
			w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) { d.Upstreams = []dispatch.Upstream{c.upstream} })
			w.awaitEnd(w.submit(chatLines(1, "m"), func(b *store.Batch) { b.Tenant = "research" }))
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHeadersThatCannotBeSentAreRefused(t *testing.T) {
	for name, u := range map[string]dispatch.Upstream{
		"tenant_header": {URL: "http://h", TenantHeader: "X Tenant"},
		"headers":       {URL: "http://h", Headers: map[string]string{"X-Ok": "a\nb"}},
	} {
		_, err := dispatch.New(dispatch.DefaultConfig(), dispatch.Deps{
			Upstreams: []dispatch.Upstream{u}, Scheduler: scheduler.DefaultConfig(), Flow: flowcontrol.DefaultConfig(), Logger: slog.Default(),
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
}
