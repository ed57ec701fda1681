package random_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Given metrics replace those of every pool, and change nothing else.
func TestGivenMetricsChangeNothingElse(t *testing.T) {
	drawn := source(t, "any", 3)
	each, off := drawn, drawn
	each.Metrics, off.Metrics = random.Metrics{Period: time.Second}, random.Metrics{Off: true}
	contaminated := 0
	for number := range 200 {
		was := drawn.Sketch(number).Scenario
		is, none := each.Sketch(number).Scenario, off.Sketch(number).Scenario
		want := was.Metrics.Gateway
		if want == scenario.GatewayContaminated {
			want = scenario.GatewayHistogram
			contaminated++
		}
		if m := is.Metrics; m.Period != time.Second || m.Jitter > time.Second/5 || !m.Engine ||
			m.Gateway != want {
			t.Errorf("pool %d is read as %+v, drawn as %+v", number, m, was.Metrics)
		}
		if m := none.Metrics; m.Engine || m.Gateway != scenario.GatewayOff {
			t.Errorf("pool %d has the metrics %+v", number, m)
		}
		is.Metrics, none.Metrics = was.Metrics, was.Metrics
		if !reflect.DeepEqual(was, is) || !reflect.DeepEqual(was, none) {
			t.Errorf("pool %d is otherwise %+v, %+v and %+v", number, was, is, none)
		}
	}
	if contaminated == 0 {
		t.Error("no gateway counts batch lines")
	}
	was, err := drawn.Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []random.Source{each, off} {
		is, err := s.Draw(5)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(was.Scenario.Interactive, is.Scenario.Interactive) ||
			!reflect.DeepEqual(was.NoBatch, is.NoBatch) {
			t.Errorf("with the metrics %s pool 5 is %+v without batch work, else %+v", s.Metrics,
				is.NoBatch.Interactive, was.NoBatch.Interactive)
		}
	}
}
