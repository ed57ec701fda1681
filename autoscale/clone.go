package autoscale

import (
	"maps"
	"slices"
)

// clone returns a tracker that observes the same from now on, without any effect on this one.
func (w *tracker) clone() *tracker {
	c := &tracker{cfg: w.cfg, pools: make(map[string]*trackedPool, len(w.pools)),
		recalled: maps.Clone(w.recalled)}
	for id, x := range w.pools {
		y := *x
		y.forecast = x.forecast.clone()
		y.harvest.misses = x.harvest.misses.clone()
		y.starts.took = slices.Clone(x.starts.took)
		y.stabilizer.wanted = slices.Clone(x.stabilizer.wanted)
		c.pools[id] = &y
	}
	return c
}

func (f forecast) clone() forecast {
	f.recent, f.overruns = slices.Clone(f.recent), slices.Clone(f.overruns)
	f.errors = slices.Clone(f.errors)
	f.near, f.far = slices.Clone(f.near), slices.Clone(f.far)
	return f
}
