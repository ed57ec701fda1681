package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

// A pool with separate prefill and decode is metered by the side that is short; the engines of both
// are read; without one of the sides it gets no lines.
func TestThePoolIsMeteredByTheShortSide(t *testing.T) {
	cfg := config.Default()
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "pd", Models: []string{"m"},
		Max: 4}, Kubernetes: kube.PoolConfig{Selector: "app=vllm", Prefill: "side=prefill",
		Decode: "side=decode"}}}
	cfg.Upstreams = []dispatch.Upstream{{Name: "router", URL: "http://router", Pool: "pd",
		Mode: dispatch.ModeGateway}}
	k := &kubernetes{changed: make(chan struct{}, 1), found: map[string][]kube.Runner{}}
	find := func(runners ...kube.Runner) { k.find(kube.State{Pool: "pd", Runners: runners}) }
	runner := func(name string, role kube.Role) kube.Runner {
		return kube.Runner{Name: name, Pod: name, URL: "http://" + name + ":8000", Role: role,
			Phase: autoscale.Ready}
	}
	planned := func(want ...string) {
		t.Helper()
		found := k.withFound(cfg)
		var engines []string
		for _, u := range found.Upstreams {
			engines = append(engines, u.Engines...)
		}
		if diff := cmp.Diff(want, engines); diff != "" {
			t.Errorf("planned engines (-want +got)\n%s", diff)
		}
	}
	p0, p1 := runner("p0", kube.Prefill), runner("p1", kube.Prefill)
	d0 := runner("d0", kube.Decode)
	if found := k.withFound(cfg); len(found.Upstreams) != 1 {
		t.Errorf("before its pods are known, the pool has the upstreams %v", found.Upstreams)
	}
	find(p0, p1, d0)
	planned("http://d0:8000/metrics")
	var read []string
	for _, r := range k.otherSides() {
		read = append(read, r.Name+" "+r.Metrics)
	}
	if diff := cmp.Diff([]string{"router/p0:8000 http://p0:8000/metrics",
		"router/p1:8000 http://p1:8000/metrics"}, read); diff != "" {
		t.Errorf("read besides (-want +got)\n%s", diff)
	}
	now := time.Unix(1_800_000_000, 0)
	observe := func(after time.Duration, engine string, waiting float64) bool {
		r := flowcontrol.NoReading(flowcontrol.Metrics, now)
		r.Waiting = waiting
		return k.sides.observe(now.Add(after), "router/"+engine+":8000", &r)
	}
	observe(0, "d0", 2)
	observe(0, "p0", 1)
	if observe(0, "p1", 2); observe(20*time.Second, "p0", 1) {
		t.Error("prefill is short though more requests wait for decode")
	}
	observe(21*time.Second, "d0", 0)
	observe(22*time.Second, "p0", 9)
	planned("http://d0:8000/metrics") // it may be a moment
	if !observe(40*time.Second, "p0", 9) {
		t.Error("prefill is not short though requests wait for it")
	}
	planned("http://p0:8000/metrics", "http://p1:8000/metrics")
	observe(41*time.Second, "p0", 0)
	observe(42*time.Second, "p1", 0)
	if !observe(60*time.Second, "p0", 0) {
		t.Error("prefill is short for ever")
	}
	planned("http://d0:8000/metrics")
	d0.Phase = autoscale.Starting
	find(p0, p1, d0)
	if found := k.withFound(cfg); len(found.Upstreams) != 0 {
		t.Errorf("without decode the pool has the upstreams %v", found.Upstreams)
	}
}

// The metrics of a runner are where the annotation of its pod says.
func TestMetricsOfFoundRunners(t *testing.T) {
	cfg := config.Default()
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "p", Models: []string{"m"},
		Max: 4}, Kubernetes: kube.PoolConfig{Selector: "app=trt"}}}
	k := &kubernetes{changed: make(chan struct{}, 1), found: map[string][]kube.Runner{}}
	for path, want := range map[string]string{"": "http://a:8000/metrics",
		"/prometheus/metrics": "http://a:8000/prometheus/metrics"} {
		k.find(kube.State{Pool: "p", Runners: []kube.Runner{{Name: "a", Pod: "a",
			URL: "http://a:8000", MetricsPath: path, Phase: autoscale.Ready}}})
		found := k.withFound(cfg).Upstreams
		if len(found) != 1 || found[0].MetricsURL() != want {
			t.Errorf("path %q: found %+v, want the metrics %s", path, found, want)
		}
	}
}
