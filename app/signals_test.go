package app

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
)

// The signals that the log names are those that are read, as often as they are.
func TestSignals(t *testing.T) {
	const pages, asked = "metrics of 2 runners every 1s (250ms where that is cheap)",
		"capabilities of 2 runners every 5s where there are any"
	prometheus := func(c *config.Config) {
		c.Telemetry.Prometheus.URL = "http://prometheus:9090"
	}
	withoutPages := func(c *config.Config) {
		for i := range c.Upstreams {
			c.Upstreams[i].Metrics = "none"
		}
	}
	withoutLatencies := func(c *config.Config) {
		c.Telemetry.Prometheus.TTFT, c.Telemetry.Prometheus.TPOT = nil, nil
	}
	labelled := func(c *config.Config) { c.Telemetry.Prometheus.Runners.Label = "instance" }
	gateway := func(engines ...string) func(*config.Config) {
		return func(c *config.Config) {
			c.Upstreams = []dispatch.Upstream{{URL: "http://gw", Mode: dispatch.ModeGateway,
				Engines: engines}}
		}
	}
	pool := func(p kube.PoolConfig) func(*config.Config) {
		return func(c *config.Config) {
			c.Pools = append(c.Pools, config.PoolConfig{Kubernetes: p})
			c.Pools[len(c.Pools)-1].Name = "a"
		}
	}
	all := func(changes ...func(*config.Config)) []func(*config.Config) { return changes }
	for _, test := range []struct {
		name    string
		changes []func(*config.Config)
		want    []string
	}{
		{"by default", nil, []string{pages, asked}},
		{"all at one pace", all(func(c *config.Config) { c.Telemetry.Fastest = 0 }),
			[]string{"metrics of 2 runners every 1s", asked}},
		{"no faster than every", all(func(c *config.Config) { c.Telemetry.Fastest = time.Minute }),
			[]string{"metrics of 2 runners every 1s", asked}},
		{"no metrics", all(func(c *config.Config) { c.Telemetry.Every = 0 }), []string{asked}},
		{"no capabilities", all(func(c *config.Config) { c.Telemetry.CapabilitiesEvery = 0 }),
			[]string{pages}},
		{"one page", all(func(c *config.Config) { c.Upstreams[0].Metrics = "none" }),
			[]string{"metrics of 1 runner every 1s (250ms where that is cheap)", asked}},
		{"latencies", all(prometheus),
			[]string{pages, "interactive latencies from Prometheus every 5s", asked}},
		{"pages in Prometheus", all(prometheus, withoutPages, withoutLatencies, labelled),
			[]string{"metrics of 2 runners from Prometheus every 5s", asked}},
		{"some pages in Prometheus, and latencies", all(prometheus, labelled,
			func(c *config.Config) { c.Upstreams[0].Metrics = "none" }),
			[]string{"metrics of 1 runner every 1s (250ms where that is cheap)",
				"metrics of 1 runner from Prometheus every 5s",
				"interactive latencies from Prometheus every 5s", asked}},
		{"a label without a server", all(labelled, withoutPages), []string{asked}},
		{"a gateway", all(gateway()), nil},
		{"engines", all(gateway("http://a/metrics", "http://b/metrics")),
			[]string{"metrics of 2 engines behind gateways every 1s (250ms where that is cheap)"}},
		{"engines in Prometheus", all(gateway("vllm-.*"), prometheus, withoutLatencies, labelled),
			[]string{"metrics of the engines behind gateways from Prometheus every 5s"}},
		{"Kubernetes", all(pool(kube.PoolConfig{Selector: "app=a"})), []string{
			"metrics of 2 runners and those in Kubernetes every 1s (250ms where that is cheap)",
			"capabilities of 2 runners and those in Kubernetes every 5s where there are any"}},
		{"Kubernetes alone", all(pool(kube.PoolConfig{Selector: "app=a",
			Metrics: kube.Metrics{Running: kube.Metric{Pods: "running"}}}),
			func(c *config.Config) { c.Upstreams = nil }), []string{
			"metrics of the runners in Kubernetes every 1s (250ms where that is cheap)",
			"metrics of pool a from the metrics APIs of Kubernetes every 15s",
			"capabilities of the runners in Kubernetes every 5s where there are any"}},
		{"prefill and decode", all(gateway(), pool(kube.PoolConfig{Selector: "app=a",
			Prefill: "role=prefill", Decode: "role=decode"})), []string{"metrics of the engines " +
			"in Kubernetes behind gateways every 1s (250ms where that is cheap)"}},
		{"a pool of upstreams", all(pool(kube.PoolConfig{})), []string{pages, asked}},
	} {
		cfg := config.Default()
		cfg.Upstreams = []dispatch.Upstream{{URL: "http://a"}, {URL: "http://b"}}
		for _, change := range test.changes {
			change(&cfg)
		}
		got, err := signals(cfg)
		if want := strings.Join(test.want, "\n"); err != nil || strings.Join(got, "\n") != want {
			t.Errorf("%s: got %q, %v, want %q", test.name, got, err, test.want)
		}
	}
}

// The policy observes its own lines too: the times of tokens of those that are streamed.
func TestSignalsOfLines(t *testing.T) {
	own := headroom.DefaultConfig()
	streaming := own
	streaming.Streams = headroom.StreamsSome
	for _, test := range []struct {
		flow flowcontrol.Config
		want string
	}{
		{config.Default().FlowControl.Select(headroom.Name, own), "times of answers"},
		{config.Default().FlowControl.Select(headroom.Name, streaming),
			"times of tokens of streamed lines, times of answers"},
	} {
		if got := strings.Join(ownSignals(test.flow), ", "); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
