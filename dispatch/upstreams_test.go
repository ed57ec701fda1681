package dispatch

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/flowcontrol"
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store"
)

// durable is a store's journals as far as settings need them.
type durable struct{ Journals }

func (durable) Durability() store.Durability { return store.Durability{} }

// manyUpstreams returns settings with so many upstreams.
func manyUpstreams(n int) Settings {
	to := Settings{Config: DefaultConfig(), Scheduler: scheduler.DefaultConfig(),
		Registry: registry.New(nil, flowcontrol.DefaultConfig())}
	for i := range n {
		to.Upstreams = append(to.Upstreams, Upstream{URL: fmt.Sprintf("http://10.0.0.%d:8000", i),
			Name: fmt.Sprint("pod-", i), Pool: "gpus"})
	}
	return to
}

// Replacing one of many upstreams leaves the runners of the others.
func TestReplacingOneUpstreamLeavesTheOthers(t *testing.T) {
	to, with := manyUpstreams(100), Store{Journals: durable{}}
	before, err := newSettings(to, &settings{}, with, nil)
	if err != nil {
		t.Fatal(err)
	}
	to.Upstreams = slices.Clone(to.Upstreams)
	to.Upstreams[50] = Upstream{URL: "http://10.0.1.1:8000", Name: "pod-new", Pool: "gpus"}
	after, err := newSettings(to, before, with, nil)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for name, u := range before.runners {
		if after.runners[name] == u {
			same++
		}
	}
	if same != 99 || len(after.runners) != 100 {
		t.Errorf("%d runners stay the same of %d", same, len(after.runners))
	}
}

func BenchmarkReplaceUpstream(b *testing.B) {
	to, with := manyUpstreams(100), Store{Journals: durable{}}
	before, err := newSettings(to, &settings{}, with, nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		to.Upstreams[50].Name = fmt.Sprint("pod-", 1000+i)
		if before, err = newSettings(to, before, with, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// The series of pods that are gone are removed, but not before their last values are scraped.
func TestSeriesOfRemovedRunnersAreRemoved(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	series := func(name string) (n int) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, s := range f.Metric {
				if slices.ContainsFunc(s.Label, func(l *dto.LabelPair) bool {
					return l.GetName() == "runner" && l.GetValue() == name
				}) {
					n++
				}
			}
		}
		return n
	}
	now := time.Unix(1_800_000_000, 0)
	a, b := map[string]*upstream.Runner{"a": {}}, map[string]*upstream.Runner{"b": {}}
	for _, name := range []string{"a", "b"} {
		m.Finished(name, plan.Succeeded, time.Second)
		m.FirstToken(name, time.Second)
		m.Streamed(name, "streamed")
	}
	if series("a") == 0 {
		t.Fatal("there are no series")
	}
	m.prune(now, b, a) // a is replaced by b
	m.prune(now.Add(keepSeries-time.Second), b, b)
	if series("a") == 0 {
		t.Error("the series are removed at once")
	}
	m.prune(now.Add(keepSeries), b, b)
	if series("a") > 0 || series("b") == 0 {
		t.Errorf("there are %d series of the removed runner, %d of the other", series("a"),
			series("b"))
	}
	m.Finished("a", plan.Succeeded, time.Second)
	if series("a") == 0 {
		t.Error("a runner that returns has no series")
	}
}
