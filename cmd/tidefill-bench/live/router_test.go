package live

import (
	"testing"

	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

func TestRouterChoosesTheLeastLoad(t *testing.T) {
	r := &router{kind: scenario.LeastRequests, loads: []load{{value: 2}, {value: 0}, {value: 1}},
		last: -1}
	var got []int
	for range 4 {
		got = append(got, r.choose(workload.Request{Input: 1}, nil))
	}
	// 1 gets the first; then 2 and 1 have as many, and 2 is next; then 1; then all have two.
	if want := [4]int{1, 2, 1, 2}; [4]int(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRouterAvoidsRunnersThatAreAway(t *testing.T) {
	r := &router{kind: scenario.LeastWork, loads: make([]load, 2), last: -1}
	r.lost(0)
	for range 3 {
		if i := r.choose(workload.Request{Input: 100}, nil); i != 1 {
			t.Errorf("runner %d got a request", i)
		}
	}
	if i := r.choose(workload.Request{Input: 1}, map[int]bool{1: true}); i < 0 {
		t.Error("with no runner left, none was chosen; the last resort is any")
	}
}
