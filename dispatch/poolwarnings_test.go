package dispatch

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// A warning is logged once, although its figures change, and again when it comes back.
func TestWarningsAreLoggedWhenTheyChange(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	pool := func(model string, texts ...string) plan.PoolStatus {
		p := plan.PoolStatus{ID: model}
		for _, text := range texts {
			code, _, _ := strings.Cut(text, " ")
			p.Warnings = append(p.Warnings, flowcontrol.Warning{Code: code, Text: text})
		}
		return p
	}
	var warnings poolWarnings
	for i, step := range []struct {
		pools []plan.PoolStatus
		want  []string // each part of one record
	}{
		{[]plan.PoolStatus{pool("m"), pool("n")}, nil},
		{[]plan.PoolStatus{pool("m", "slow 1"), pool("n")},
			[]string{`level=WARN msg="flow control warns" pool=m warning=slow text="slow 1"`}},
		{[]plan.PoolStatus{pool("m", "slow 2"), pool("n")}, nil},
		{[]plan.PoolStatus{pool("m", "slow 2"), pool("n", "slow 3")}, []string{"pool=n"}},
		{[]plan.PoolStatus{pool("m", "other 1"), pool("n", "slow 3")},
			[]string{"warning=other", "level=INFO"}},
		{[]plan.PoolStatus{pool("m", "slow 4")}, []string{"slow 4", "pool=m", "pool=n"}},
	} {
		out.Reset()
		warnings.log(log, step.pools)
		if got := strings.Count(out.String(), "\n"); got != len(step.want) {
			t.Errorf("step %d: %d records, want %d:\n%s", i, got, len(step.want), out.String())
		}
		for _, want := range step.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("step %d: %q lacks %q", i, out.String(), want)
			}
		}
	}
}

func TestWarningsAreAMetric(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	gauges := func() (all []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, g := range f.Metric {
				if f.GetName() == "tidefill_pool_warning" && g.Gauge.GetValue() == 1 {
					all = append(all, g.Label[0].GetValue()+" "+g.Label[1].GetValue())
				}
			}
		}
		return all
	}
	m.status.setPools([]plan.PoolStatus{{ID: "m",
		Warnings: []flowcontrol.Warning{{Code: "slow"}}}}, make([][]flowcontrol.Term, 1))
	if got := gauges(); len(got) != 1 || got[0] != "m slow" {
		t.Errorf("gauges of %q, want m slow", got)
	}
	m.status.setPools([]plan.PoolStatus{{ID: "m"}}, make([][]flowcontrol.Term, 1))
	if got := gauges(); len(got) != 0 {
		t.Errorf("gauges of %q remain", got)
	}
}
