package upstream

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
)

// Engines count while their readings go on. All are taken for as full as the fullest, which lines
// can't be kept from.
func TestEnginesComeAndGo(t *testing.T) {
	var e engines
	start := time.Unix(1_000_000, 0)
	see := func(name string, seconds int, kv float64) (got float64, isNew bool) {
		r := flowcontrol.NoReading(flowcontrol.Metrics, start.Add(time.Duration(seconds)*
			time.Second))
		r.KVUsed = kv
		seen, isNew := e.see(r.Sampled, name, &r)
		if r.KVUsed != kv && !math.IsNaN(kv) {
			t.Errorf("the reading itself was changed")
		}
		return seen.KVUsed, isNew
	}
	expect := func(seconds int, want ...string) {
		t.Helper()
		at := start.Add(time.Duration(seconds) * time.Second)
		if diff := cmp.Diff(want, e.names(at)); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", seconds, diff)
		}
	}
	expect(0)
	if kv, isNew := see("gw/a", 0, 0.2); kv != 0.2 || !isNew {
		t.Errorf("the first: KV %v, new %v", kv, isNew)
	}
	see("gw/b", 0, 0.9)
	if kv, isNew := see("gw/a", 1, 0.3); kv != 0.9 || isNew {
		t.Errorf("beside a fuller one: KV %v, new %v; want 0.9", kv, isNew)
	}
	if kv, _ := see("gw/c", 1, math.NaN()); !math.IsNaN(kv) {
		t.Errorf("one that shows no KV cache got %v", kv)
	}
	expect(2, "gw/a", "gw/b", "gw/c")
	if kv, _ := see("gw/a", 20, 0.3); kv != 0.3 {
		t.Errorf("the other was full long ago: KV %v, want 0.3", kv)
	}
	see("gw/b", 0, 0.9) // an old reading again, as of Prometheus
	expect(45, "gw/a")
	if _, isNew := see("gw/b", 46, 0.9); !isNew {
		t.Error("an engine that is back is not new")
	}
	expect(50, "gw/a", "gw/b")
}

func TestModesOfUpstreams(t *testing.T) {
	behind := func(engine string) Upstream {
		return Upstream{Mode: ModeGateway, Engines: []string{engine}}
	}
	for name, c := range map[string]struct {
		upstream Upstream
		ok       bool
	}{
		"an engine":               {Upstream{}, true},
		"a gateway":               {Upstream{Mode: "gateway"}, true},
		"with pages":              {behind("http://a:1/metrics"), true},
		"with an expression":      {behind("vllm-.*"), true},
		"another mode":            {Upstream{Mode: "proxy"}, false},
		"engines without a mode":  {Upstream{Engines: []string{"http://a:1/metrics"}}, false},
		"a page of the gateway":   {Upstream{Mode: "gateway", Metrics: "http://gw/metrics"}, false},
		"an empty entry":          {behind(""), false},
		"a wrong expression":      {behind("vllm-("), false},
		"a URL without a host":    {behind("http:///metrics"), false},
		"a URL of another scheme": {behind("ftp://a/metrics"), false},
	} {
		if err := c.upstream.Validate(); (err == nil) != c.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for entry, want := range map[string]string{"http://a:1/metrics": "a:1",
		"https://a/prometheus/metrics": "a/prometheus", "http://a:1/": "a:1", "vllm-.*": ""} {
		if got, err := EngineName(entry); got != want || err != nil {
			t.Errorf("%s is named %q, %v; want %q", entry, got, err, want)
		}
	}
}

// The fault of an entry with a mistake shows no password and no token in it.
func TestFaultsOfEnginesShowNoSecret(t *testing.T) {
	for entry, want := range map[string]string{
		"htp://u:SECRET@gpu/metrics":     "engines[0]: is not shown",
		"http://u:SECRET%zz@gpu/metrics": "engines[0]: is not shown",
		"ftp://gpu/metrics?token=SECRET": "engines[0]: is not shown",
		"u:SECRET(@gpu/metrics":          "missing closing )",
		"gpu:8000/metrics?token=(SECRET": "missing closing )",
		"htp://gpu/metrics":              `engines[0]: "htp://gpu/metrics" is no URL`,
		"vllm-(":                         "missing closing ): `vllm-(`",
	} {
		err := Upstream{Mode: ModeGateway, Engines: []string{entry}}.Validate()
		if err == nil || strings.Contains(err.Error(), "SECRET") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", entry, err, want)
		}
	}
}

func TestWhatStopsARunner(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		state runner.State
		want  plan.Reason
	}{
		{runner.State{Queue: nan, KVUsed: nan}, plan.Flowing},
		{runner.State{Queue: 15, MaxQueue: 16, KVUsed: 0.9, NotLoaded: []string{"n"}},
			plan.Flowing},
		{runner.State{Queue: 16, MaxQueue: 16}, plan.QueueFull},
		{runner.State{Queue: 3}, plan.Flowing},
		{runner.State{Queue: nan, KVUsed: 0.97}, plan.KVFull},
		{runner.State{NotLoaded: []string{"m"}}, plan.Flowing}, // it has loaded the other
		{runner.State{NotLoaded: []string{"m", "o"}}, plan.ModelNotLoaded},
		{runner.State{Unhealthy: true, Queue: 16, MaxQueue: 16}, plan.Unhealthy},
		{runner.State{Starting: true}, plan.Starting},
	} {
		if got := stopReason(c.state, []string{"m", "o"}); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.state, got, c.want)
		}
	}
}
