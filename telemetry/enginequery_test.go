package telemetry

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Prometheus knows which engines are behind a gateway. Each is a runner of its own.
func TestEnginesAreFoundInPrometheus(t *testing.T) {
	series := func(instance, value string) string {
		return `{"metric":{"__name__":"vllm:num_requests_running","instance":"` + instance +
			`"},"value":[1700000100.5,"` + value + `"]}`
	}
	url := fakePrometheus(t,
		[2]string{"timestamp(", `[{"metric":{"instance":"10.0.0.1:8000"},"value":[1,"1700000090"]},` +
			`{"metric":{"instance":"10.0.0.2:8000"},"value":[1,"1700000095"]}]`},
		[2]string{`instance=~"10[.]0[.]0[.].*"`, "[" + series("10.0.0.1:8000", "3") + "," +
			series("10.0.0.2:8000", "4") + "]"})
	cfg := quick()
	cfg.Prometheus.URL, cfg.Prometheus.TTFT, cfg.Prometheus.TPOT = url, nil, nil
	cfg.Prometheus.Runners = PrometheusRunners{Label: "instance"}
	seen := newCollector()
	names := func() (names []string) {
		for _, s := range seen.of(flowcontrol.Metrics) {
			if s.Reading.Running != map[string]float64{"gw/10.0.0.1:8000": 3,
				"gw/10.0.0.2:8000": 4}[s.Runner] {
				t.Errorf("got %v of %s", s.Reading.Running, s.Runner)
			}
			names = append(names, s.Runner)
		}
		slices.Sort(names)
		return slices.Compact(names)
	}
	seen.run(t, cfg, func() bool {
		return len(names()) == 2 && strings.Contains(seen.logged(), "upstreams[].engines")
	}, Runner{Name: "gw", Engines: "10[.]0[.]0[.].*"}, Runner{Name: "other", Engines: "none"})
}
