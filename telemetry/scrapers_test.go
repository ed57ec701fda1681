package telemetry

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A process that several jobs or replicas of Prometheus scrape is counted once. Ranks and processes
// of a runner are added up.
func TestSeriesOfATargetAreCountedOnce(t *testing.T) {
	const first = `"instance":"10.0.0.1:8000"`
	for name, test := range map[string]struct {
		labels []string // of the series, each of 5 running requests
		want   float64
	}{
		"two jobs": {[]string{first + `,"job":"a"`, first + `,"job":"b"`}, 5},
		"a job that adds labels": {[]string{first + `,"job":"a"`,
			first + `,"job":"b","app":"vllm","node":"n"`}, 5},
		"two replicas": {[]string{first + `,"prometheus_replica":"0"`,
			first + `,"prometheus_replica":"1"`}, 5},
		"two jobs and ranks": {[]string{first + `,"job":"a","engine":"0"`,
			first + `,"job":"a","engine":"1"`, first + `,"job":"b","engine":"0"`,
			first + `,"job":"b","engine":"1"`}, 10},
		"two processes": {[]string{first + `,"job":"a"`,
			`"instance":"10.0.0.1:8001","job":"b"`}, 10},
		"instances that are hosts": {[]string{`"instance":"h","job":"a"`,
			`"instance":"h","job":"b"`}, 10},
		"no instances": {[]string{`"job":"a"`, `"job":"b"`}, 10},
	} {
		var all []string
		for _, labels := range test.labels {
			all = append(all, `{"metric":{"__name__":"vllm:num_requests_running","role":"r",`+
				labels+`},"value":[1700000100,"5"]}`)
		}
		cfg := DefaultConfig()
		cfg.Prometheus.Runners.Label = "role"
		cfg.Prometheus.URL = fakePrometheus(t,
			[2]string{"timestamp(", `[{"metric":{"role":"r"},"value":[1,"1700000090"]}]`},
			[2]string{"{__name__=~", "[" + strings.Join(all, ",") + "]"})
		r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		q := &runnerQuery{reader: r,
			groups: newGroups(newPromQuery(cfg.Prometheus, r.access, r.log, nil), r)}
		q.follow([]Runner{{Name: "r"}})
		samples, err := q.read(t.Context())
		if err != nil || samples[0].Reading.Running != test.want {
			t.Errorf("%s: got %+v, %v, want %v running", name, samples[0].Reading, err, test.want)
		}
	}
}

// A job that keeps some metrics of a process, as for an autoscaler, hides nothing of one that has
// more of them.
func TestAJobThatKeepsSomeMetricsHidesNoOther(t *testing.T) {
	series := func(job, name, value string) string {
		return `{"metric":{"__name__":"vllm:` + name + `","role":"r","instance":"10.0.0.1:8000",` +
			`"job":"` + job + `"},"value":[1700000100,"` + value + `"]}`
	}
	full := []string{series("vllm", "num_requests_running", "5"),
		series("vllm", "num_requests_waiting", "3"), series("vllm", "generation_tokens_total", "7")}
	for name, further := range map[string][]string{
		"the queue": {series("autoscaler", "num_requests_waiting", "2")},
		"both gauges": {series("autoscaler", "num_requests_waiting", "2"),
			series("autoscaler", "num_requests_running", "4")},
	} {
		cfg := DefaultConfig()
		cfg.Prometheus.Runners.Label = "role"
		cfg.Prometheus.URL = fakePrometheus(t,
			[2]string{"timestamp(", `[{"metric":{"role":"r"},"value":[1,"1700000090"]}]`},
			[2]string{"{__name__=~", "[" + strings.Join(append(further, full...), ",") + "]"})
		r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		q := &runnerQuery{reader: r,
			groups: newGroups(newPromQuery(cfg.Prometheus, r.access, r.log, nil), r)}
		q.follow([]Runner{{Name: "r"}})
		samples, err := q.read(t.Context())
		want := reading(flowcontrol.Metrics, func(r *flowcontrol.Reading) {
			r.Running, r.Waiting, r.OutputTokens = 5, 3, 7
		})
		if err != nil || len(samples) != 1 {
			t.Errorf("%s: got %+v, %v, want one sample", name, samples, err)
		} else if diff := cmp.Diff(want, *samples[0].Reading, equalReadings); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
