package autoscale

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// What is saved of a pool has a bounded size, as JSON: docs/scaling.md says which.
func TestSizeOfWhatWasLearned(t *testing.T) {
	f := newFleet(t)
	s := State{Pools: []PoolState{with(chatPool(20, 5), 5), with(batchPool(20), 2)}}
	now := noon
	for ; now.Before(noon.Add(9 * 24 * time.Hour)); now = now.Add(time.Minute) {
		hour := now.Sub(noon).Hours()
		s.Pools[0].Interactive.Rate = 3 + 2*math.Sin(2*math.Pi*hour/24) + 0.7*math.Sin(hour*1.7)
		s.Jobs = jobs{job("a", now.Sub(noon)+6*time.Hour, 4+3*math.Sin(hour))}
		s.Pools[0].Harvested += 12345.678
		s.Pools[1].Harvested += 12345.678
		f.Step(now, s)
	}
	limits := map[string][2]int{"chat": {8_000, 12_000}, "batch": {100, 1_000}}
	for _, learned := range f.Learned(now) {
		data, err := json.Marshal(learned)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("what was learned of the pool %s in nine days takes %d bytes", learned.Pool,
			len(data))
		if limit := limits[learned.Pool]; len(data) < limit[0] || len(data) > limit[1] {
			t.Errorf("%s: %d bytes, not %v; docs/scaling.md is to be changed", learned.Pool,
				len(data), limit)
		}
	}
}
