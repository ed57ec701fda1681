package telemetry

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestEveryStateIsWorded(t *testing.T) {
	registry := prometheus.NewRegistry()
	newGauges(registry).setState(source{}, stateAway)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("got %v, %v; want the states alone", families, err)
	}
	help := families[0].GetHelp()
	for _, s := range []state{stateAway, stateRefused, stateNoPage, stateTooLarge, stateGarbled,
		stateFailing, stateNoData, stateStarting, stateMixed, stateFrozen} {
		if meanings[s] == "" {
			t.Errorf("nothing says what %s means", s)
		}
		if !strings.Contains(help, string(s)) {
			t.Errorf("the metric's help lacks %s: %s", s, help)
		}
	}
}

func TestDegradationsEnd(t *testing.T) {
	var r Reader
	a, b := source{target: "gpu-2", kind: "metrics"}, source{target: "gpu-1", kind: "metrics"}
	r.degraded.set(a, stateAway)
	r.degraded.set(b, stateFrozen)
	r.degraded.set(a, stateGarbled)
	all := r.Degraded()
	if len(all) != 2 || all[0].Target != "gpu-1" || all[1].State != "garbled" {
		t.Errorf("degraded are %+v", all)
	}
	r.degraded.set(a, "")
	if all := r.Degraded(); len(all) != 1 || all[0].Target != "gpu-1" {
		t.Errorf("after one has recovered: %+v", all)
	}
}
