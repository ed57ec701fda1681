package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// newEnginePage serves the metrics of an idle engine.
func newEnginePage(t testing.TB) *httptest.Server {
	t.Helper()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `vllm:num_requests_running{model_name="m"} 0
vllm:num_requests_waiting{model_name="m"} 0
vllm:kv_cache_usage_perc{model_name="m"} 0.25
`)
	}))
	t.Cleanup(page.Close)
	return page
}

// A batch runs while its upstream becomes a gateway with two engines, loses one of them, gets it
// back, and becomes a single engine again. No line is lost or sent twice.
func TestReloadTurnsAnUpstreamIntoAGateway(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 20*time.Millisecond, 60*time.Millisecond
	first, second := newEnginePage(t), newEnginePage(t)
	version := func(keys string) string { // the shadow has the engines' metrics read
		return "flowcontrol: {policy: fixed, fixed: {per_runner: 8}, " +
			"shadow: {policy: headroom}}\ntelemetry: {every: 100ms}\n" +
			fmt.Sprintf("upstreams: [{url: %q, name: gw%s}]\n", stub.URL, keys)
	}
	gateway := func(engines ...string) string {
		return version(", mode: gateway, engines: [" + strings.Join(engines, "/metrics, ") +
			"/metrics]")
	}
	file := newConfigFile(t, version(", metrics: none"))
	d := NewDaemon(t, Options{Admin: freeAddress(t), Args: []string{"--config", file.path}})
	c := d.Client()
	lines := NewLines("gateway", "m", 3000)
	b := c.Submit(t, lines.Content, "")
	past := func(n int) {
		t.Helper()
		c.Await(t, b.ID, 30*time.Second, func(b Batch) bool {
			return b.RequestCounts.Completed >= n
		})
	}
	// planned waits until lines are planned with these runners.
	planned := func(want ...string) {
		t.Helper()
		const name = `tidefill_runner_allowance_lines{pool="m",runner=`
		awaitThat(t, 20*time.Second, fmt.Sprintf("the runners are %v", want), func() bool {
			all := page(t, "http://"+d.Admin+"/metrics")
			found := 0
			for series := range all {
				if strings.HasPrefix(series, name) {
					found++
				}
			}
			for _, runner := range want {
				if _, known := all[fmt.Sprintf("%s%q}", name, runner)]; !known {
					return false
				}
			}
			return found == len(want)
		})
	}
	change := func(to string) {
		file.write(to)
		d.Signal(syscall.SIGHUP)
	}
	nameOf := func(engine *httptest.Server) string {
		return "gw/" + strings.TrimPrefix(engine.URL, "http://")
	}
	past(100)
	planned("gw")
	change(gateway(first.URL, second.URL))
	planned(nameOf(first), nameOf(second))
	past(600)
	change(gateway(second.URL))
	planned(nameOf(second))
	change(gateway(second.URL, first.URL))
	planned(nameOf(first), nameOf(second))
	past(1200)
	change(version(", metrics: none"))
	planned("gw")
	ended := c.AwaitEnd(t, b.ID, 60*time.Second)
	c.CheckComplete(t, ended, lines)
	d.Verify(t, b.ID)
	if n := stub.Requests(); n != 3000 {
		t.Errorf("%d requests for 3000 lines", n)
	}
}
