package telemetry

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

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
		var all, stamps []string
		for _, labels := range test.labels {
			all = append(all, `{"metric":{"__name__":"vllm:num_requests_running","role":"r",`+
				labels+`},"value":[1700000100,"5"]}`)
			stamps = append(stamps, `{"metric":{"role":"r",`+labels+`},"value":[1,"1700000090"]}`)
		}
		samples, err := readRunner(t, fakePrometheus(t,
			[2]string{"timestamp(", "[" + strings.Join(stamps, ",") + "]"},
			[2]string{"{__name__=~", "[" + strings.Join(all, ",") + "]"})).read(t.Context())
		if err != nil || samples[0].Reading.Running != test.want {
			t.Errorf("%s: got %+v, %v, want %v running", name, samples[0].Reading, err, test.want)
		}
	}
}

// A job that keeps some metrics of a process, as for an autoscaler, hides nothing of one that has
// more of them. The time of the reading is that of the job whose values are used.
func TestOneScraperOfATargetIsUsed(t *testing.T) {
	const running, waiting = "num_requests_running", "num_requests_waiting"
	type job struct {
		name  string
		value int // of all its metrics
		at    int // of its last scrape
		names []string
	}
	gauges, all := []string{running, waiting}, []string{running, waiting, "generation_tokens_total"}
	for name, test := range map[string]struct {
		jobs []job
		used int // of jobs
	}{
		"some metrics without the requests": {[]job{{"autoscaler", 2, 99, []string{waiting}},
			{"vllm", 3, 95, all}}, 1},
		"some metrics": {[]job{{"autoscaler", 2, 99, gauges}, {"vllm", 3, 90, all}}, 1},
		"many metrics without the requests": {[]job{{"latencies", 2, 99,
			[]string{waiting, "generation_tokens_total", "kv_cache_usage_perc"}},
			{"vllm", 3, 90, gauges}}, 1},
		"a slow job first": {[]job{{"a", 2, 41, all}, {"b", 3, 99, all}}, 1},
		"a fast job first": {[]job{{"a", 2, 99, all}, {"b", 3, 41, all}}, 0},
		"equal jobs":       {[]job{{"b", 3, 99, all}, {"a", 2, 99, all}}, 1},
	} {
		var series, stamps []string
		for _, j := range test.jobs {
			labels := `"role":"r","instance":"10.0.0.1:8000","job":"` + j.name + `"`
			for _, name := range j.names {
				series = append(series, fmt.Sprintf(`{"metric":{"__name__":"vllm:%s",%s},`+
					`"value":[1700000100,"%d"]}`, name, labels, j.value))
			}
			if slices.Contains(j.names, running) {
				stamps = append(stamps, fmt.Sprintf(`{"metric":{%s},"value":[1,"17000000%d"]}`,
					labels, j.at))
			}
		}
		samples, err := readRunner(t, fakePrometheus(t,
			[2]string{"timestamp(", "[" + strings.Join(stamps, ",") + "]"},
			[2]string{"{__name__=~", "[" + strings.Join(series, ",") + "]"})).read(t.Context())
		if err != nil || len(samples) != 1 {
			t.Errorf("%s: got %+v, %v, want one sample", name, samples, err)
			continue
		}
		used := test.jobs[test.used]
		want := reading(flowcontrol.Metrics, func(r *flowcontrol.Reading) {
			r.Running, r.Waiting = float64(used.value), float64(used.value)
			if len(used.names) > len(gauges) {
				r.OutputTokens = float64(used.value)
			}
		})
		got := samples[0].Reading
		if diff := cmp.Diff(want, *got, equalReadings); diff != "" ||
			!got.Sampled.Equal(time.Unix(1700000000+int64(used.at), 0)) {
			t.Errorf("%s: sampled %v, want that of %s; reading (-want +got): %s", name,
				got.Sampled.Unix()-1700000000, used.name, diff)
		}
	}
}

// readRunner returns a query for the runner r, by the label role.
func readRunner(t *testing.T, url string) *runnerQuery {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Prometheus.URL, cfg.Prometheus.Runners.Label = url, "role"
	r, err := New(cfg, Deps{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	q := &runnerQuery{reader: r,
		groups: newGroups(newPromQuery(cfg.Prometheus, r.access, r.log, nil), r)}
	q.follow([]Runner{{Name: "r"}})
	return q
}

// Of scrapers with the same metrics the one used before stays in use, unless another is clearly
// newer: the clocks of several Prometheus differ.
func TestAScraperStaysInUseWhileItIsFresh(t *testing.T) {
	var used usedScrapers
	target := scrapedTarget{instance: "10.0.0.1:8000"}
	for i, test := range []struct {
		a, b int // seconds of the last scrapes; 0: there is none
		want string
	}{{10, 13, "b"}, {15, 13, "b"}, {15, 18, "b"}, {20, 18, "b"}, {25, 18, "a"}, {25, 30, "a"},
		{25, 31, "b"}, {35, 0, "a"}, {35, 36, "a"}} {
		used.begin()
		var of []scraped
		for by, seconds := range map[string]int{"a": test.a, "b": test.b} {
			if seconds > 0 {
				of = append(of, scraped{by: by, at: time.Unix(int64(seconds), 0)})
			}
		}
		used.now[target] = used.choose(target, of)
		if got := used.now[target]; got != test.want {
			t.Errorf("read %d: %s is used, want %s", i, got, test.want)
		}
	}
}
