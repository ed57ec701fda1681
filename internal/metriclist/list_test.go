package metriclist_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/metriclist"
)

const pageName = "../../docs/metrics.md"

func list(t *testing.T) []metriclist.Metric {
	t.Helper()
	metrics, err := metriclist.List()
	if err != nil {
		t.Fatal(err)
	}
	return metrics
}

func TestPageIsFresh(t *testing.T) {
	page, err := os.ReadFile(pageName)
	if err != nil {
		t.Fatal(err)
	}
	want, err := metriclist.Update(page, list(t))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(page)); diff != "" {
		t.Errorf("docs/metrics.md is stale; run go generate ./app (-want +got):\n%s", diff)
	}
	if again, err := metriclist.Update(want, list(t)); err != nil || !bytes.Equal(again, want) {
		t.Errorf("written twice the page differs: %v", err)
	}
	if _, err := metriclist.Update([]byte("# Metrics\n"), nil); err == nil {
		t.Error("a page without a place for the table is accepted")
	}
}

// The hand-written parts of the page name only metrics that exist.
func TestPageNamesMetricsThatExist(t *testing.T) {
	page, err := os.ReadFile(pageName)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range list(t) {
		known[m.Name] = true
	}
	for _, name := range regexp.MustCompile(`\btidefill_[a-z_]+`).FindAllString(string(page), -1) {
		if !known[name] {
			t.Errorf("docs/metrics.md names %s, which no code registers", name)
		}
	}
}

func TestMetricsAreDescribed(t *testing.T) {
	metrics := list(t)
	byName := map[string]metriclist.Metric{}
	for _, m := range metrics {
		byName[m.Name] = m
		if len(m.Help) < 20 || !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s: the help text is no sentence: %q", m.Name, m.Help)
		}
	}
	for _, want := range []metriclist.Metric{
		{Name: "tidefill_requests_total", Type: "counter", Labels: []string{"runner", "outcome"}},
		{Name: "tidefill_request_duration_seconds", Type: "histogram", Labels: []string{"runner"}},
		{Name: "tidefill_runner_limited", Type: "gauge",
			Labels: []string{"pool", "runner", "reason"}},
		{Name: "tidefill_reading_degraded", Type: "gauge",
			Labels: []string{"target", "source", "state"}},
		{Name: "tidefill_build_info", Type: "gauge", Labels: []string{"version"}},
		{Name: "tidefill_uploaded_bytes_total", Type: "counter"},
	} {
		want.Help = byName[want.Name].Help
		if diff := cmp.Diff(want, byName[want.Name]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
