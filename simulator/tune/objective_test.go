package tune

import (
	"testing"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/scenario"
)

func TestUnsafeSettingsAreBelowAllSafeOnes(t *testing.T) {
	result := func(useful int64, loss float64, met int) simulator.Result {
		return simulator.Result{Loss: loss, GPUHours: 10,
			Batch: simulator.Batch{Useful: useful, Deadlines: 10, Met: met}}
	}
	first, second := runKey{0, 1}, runKey{0, 2}
	tuning := Tuning{Scenarios: []compare.Scenario{{}}, before: map[runKey]simulator.Result{
		first: result(100, 0, 10), second: result(100, 0, 10)}}
	objective := func(one, other simulator.Result) float64 {
		return tuning.objective([]uint64{1, 2}, map[runKey]simulator.Result{first: one,
			second: other})
	}
	safe := objective(result(1, 0, 0), result(1, 0, 0))
	near := objective(result(900, 1.1, 10), result(900, 0, 10))
	far := objective(result(900, 1.2, 0), result(900, 0, 0))
	if !(safe > 0 && near < 0 && far < near) {
		t.Errorf("safe %v, 0.1 points too much %v, 0.2 points %v; want them in this order, the "+
			"first alone above 0", safe, near, far)
	}
	tuning.Scenarios[0].Scenario.Goals = scenario.Goals{Loss: 0.3}
	if strict := objective(result(900, 0.4, 10), result(900, 0, 10)); !(strict < 0) {
		t.Errorf("0.4 points where 0.3 are allowed: %v, want less than 0", strict)
	}
}
