package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

// Of pools, what only decides how many replicas they have applies at run time, by name; which pools
// there are, and what they serve, needs a restart.
func TestChangesOfPools(t *testing.T) {
	const base = "upstreams: [{url: http://a}]\npools:\n"
	old, err := parse(base + "- {name: a, models: [m], max: 1}\n" +
		"- {name: b, models: [m], max: 4}\n- {name: d, models: [m], max: 4}\n")
	if err != nil {
		t.Fatal(err)
	}
	next, err := parse(base + "- {name: b, models: [m, n], max: 5, role: batch}\n" +
		"- {name: c, models: [m], max: 1}\n" +
		"- {name: a, models: [m], max: 7, min: 2, price: 2, reclaim: 0.1, cold_start: 3m}\n" +
		"autoscale: {policy: queue_length}\n")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := config.Compare(old, next)
	if err != nil {
		t.Fatal(err)
	}
	text := func(all []config.Change) string {
		var rows []string
		for _, c := range all {
			row, _, _ := strings.Cut(c.String(), " {")
			rows = append(rows, row)
		}
		return strings.Join(rows, "\n")
	}
	if diff := cmp.Diff(`pools.a.min: 0 -> 2
pools.a.max: 1 -> 7
pools.a.price: 0 -> 2
pools.a.reclaim: 0 -> 0.1
pools.a.cold_start: 0s -> 3m
pools.b.max: 4 -> 5
autoscale.policy: slack -> queue_length`, text(changes.Applied)); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(`pools.b.models: [m] -> [m, "n"]
pools.b.role: "" -> batch
pools.d: removed
pools.c: added`, text(changes.Restart)); diff != "" {
		t.Errorf("restart (-want +got):\n%s", diff)
	}
	want := []config.PoolConfig{next.Pools[2], old.Pools[1], old.Pools[2]}
	want[1].Max = 5
	if diff := cmp.Diff(want, old.Running(next).Pools); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	if old.Pools[0].Max != 1 || next.Pools[0].Max != 5 {
		t.Error("a configuration was changed in place")
	}
}

// What belongs to a pool that only a restart adds waits for it, and the rest applies.
func TestAddedPoolsKeepTheirUpstreamsWaiting(t *testing.T) {
	old, err := parse("upstreams:\n- {name: a, url: http://a, models: [m]}\n" +
		"- {name: b, url: http://b, models: [m]}\n- {name: c, url: http://c, models: [m]}\n")
	if err != nil {
		t.Fatal(err)
	}
	next, err := parse("node: x\nupstreams:\n- {name: a, url: http://a, models: [m, k]}\n" +
		"- {name: b, url: http://b2, models: [n], pool: p}\n" +
		"- {name: d, url: http://d, models: [n], pool: p}\n" +
		"pools: [{name: p, models: [n], max: 1}]\n" +
		"flowcontrol: {pools: {p: {policy: fixed}, k: {policy: aimd}}}\n")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := config.Compare(old, next)
	if err != nil {
		t.Fatal(err)
	}
	paths := func(all []config.Change) (paths []string) {
		for _, c := range all {
			paths = append(paths, c.Path)
		}
		return paths
	}
	if diff := cmp.Diff([]string{"upstreams.a.models", "upstreams.c", "flowcontrol.pools.k"},
		paths(changes.Applied)); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"node", "upstreams.b.url", "upstreams.b.models",
		"upstreams.b.pool", "upstreams.d", "pools.p", "flowcontrol.pools.p"},
		paths(changes.Restart)); diff != "" {
		t.Errorf("restart (-want +got):\n%s", diff)
	}
	running := old.Running(next)
	if err := running.Validate(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(next.Upstreams[:1], running.Upstreams[:1]); diff != "" {
		t.Errorf("the first upstream (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(old.Upstreams[1:2], running.Upstreams[1:]); diff != "" {
		t.Errorf("the others (-want +got):\n%s", diff)
	}
	if len(next.Upstreams) != 3 || len(next.FlowControl.Pools) != 2 {
		t.Error("a configuration was changed in place")
	}
}
