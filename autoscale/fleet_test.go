package autoscale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidefill/tidefill/dispatch/plan"
)

func newFleet(t faulter) *Fleet {
	f, err := NewFleet(DefaultConfig())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return f
}

// serving returns a pool that serves models, with lines as those of its jobs.
func serving(p PoolState, id string, models ...string) PoolState {
	p.Name, p.Models, p.Lines = id, models, Lines{}
	return p
}

// ofModel returns a job with the mean line of batchPool.
func ofModel(j plan.Demand, model string) plan.Demand {
	mix := batchPool(1).Lines.Mix
	j.Key.Model, j.Prompt, j.Output = model, mix.Prompt, mix.Output
	j.Lines = int(j.Work/batchPool(1).Lines.Work) + 1
	return j
}

// Pools of different models are decided for as if each were alone, in whatever order they come.
func TestFleetDecidesForEachGroup(t *testing.T) {
	small := serving(batchPool(4), "small", "s")
	large, spot := serving(batchPool(6), "large", "l", "x"), serving(batchPool(8), "spot", "l")
	spot.Price, large.Price = 0.4, 1
	jobs := jobs{ofModel(job("a", 2*time.Hour, 4), "s"), ofModel(job("b", 2*time.Hour, 9), "l"),
		ofModel(job("c", time.Hour, 9), "unknown")}
	got := newFleet(t).Step(noon, State{Pools: []PoolState{large, small, spot}, Jobs: jobs})
	alone := newFleet(t).Step(noon, State{Pools: []PoolState{small}, Jobs: jobs[:1]})
	pair := newFleet(t).Step(noon, State{Pools: []PoolState{large, spot}, Jobs: jobs[1:2]})
	want := Decision{Pools: []Wanted{pair.Pools[0], alone.Pools[0], pair.Pools[1]},
		Jobs: append(pair.Jobs, alone.Jobs...), Wake: got.Wake}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-each alone +together\n%s", diff)
	}
	if alone.Pools[0].Replicas == 0 || pair.Pools[1].Replicas == 0 || pair.Pools[0].Replicas > 0 {
		t.Errorf("got %d replicas of small, %d of the cheaper, %d of the other",
			alone.Pools[0].Replicas, pair.Pools[1].Replicas, pair.Pools[0].Replicas)
	}
	for _, wake := range []time.Time{alone.Wake, pair.Wake} {
		if got.Wake.After(wake) {
			t.Errorf("the next step is at %v, want %v or before", got.Wake, wake)
		}
	}
}

// A pool keeps what was measured of it when another one joins its group.
func TestFleetRemembersPoolsWhenGroupsChange(t *testing.T) {
	f := newFleet(t)
	p := serving(batchPool(4), "one", "m")
	p.Replicas = []Replica{{ID: "r", Phase: Starting, Since: noon}}
	f.Step(noon, State{Pools: []PoolState{p}})
	p.Replicas = []Replica{{ID: "r", Phase: Ready, Since: noon.Add(7 * time.Minute)}}
	other := serving(batchPool(4), "other", "m")
	d := f.Step(noon.Add(7*time.Minute), State{Pools: []PoolState{p, other}})
	if one, two := d.Pools[0].Terms.ColdStart, d.Pools[1].Terms.ColdStart; one != 7*time.Minute ||
		two != DefaultConfig().Start.Cold {
		t.Errorf("starts take %v and %v, want 7m, as measured, and the default", one, two)
	}
}

// Pools that share no model directly belong together if a third one shares one with each.
func TestGroupsAreConnected(t *testing.T) {
	pools := []PoolState{serving(batchPool(1), "a", "x"), serving(batchPool(1), "b", "y"),
		serving(batchPool(1), "c", "z"), serving(batchPool(1), "d", "y", "x")}
	var got [][]int
	for _, g := range groupsOf(State{Pools: pools}) {
		got = append(got, g.pools)
	}
	if diff := cmp.Diff([][]int{{0, 1, 3}, {2}}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
