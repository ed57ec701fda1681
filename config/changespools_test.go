package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

// Pools are added, changed and removed at run time, by name.
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
pools.b.models: [m] -> [m, "n"]
pools.b.role: "" -> batch
pools.b.max: 4 -> 5
pools.d: removed
pools.c: added
autoscale.policy: slack -> queue_length`, text(changes.Applied)); diff != "" {
		t.Errorf("applied (-want +got):\n%s", diff)
	}
	if len(changes.Restart) > 0 {
		t.Errorf("restart: %s", text(changes.Restart))
	}
	if diff := cmp.Diff(next.Pools, old.Running(next).Pools); diff != "" {
		t.Errorf("running (-want +got):\n%s", diff)
	}
	if old.Pools[0].Max != 1 || next.Pools[0].Max != 5 {
		t.Error("a configuration was changed in place")
	}
}
