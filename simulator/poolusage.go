package simulator

import "cmp"

// PoolUse is what a pool was used and paid for.
type PoolUse struct {
	Name string `json:"name"`
	// Hours of replicas, from being asked for to being gone, and what they cost.
	Hours float64 `json:"gpu_hours"`
	Cost  float64 `json:"cost"`
	// Started counts replicas that were asked for on the way.
	Started int `json:"started"`
}

// uses are the pools', in the scenario's order.
func (sim *simulation) uses() []PoolUse {
	var uses []PoolUse
	for i, x := range sim.pools {
		begun := sim.setup.Scenario.Pool.Replicas
		if i > 0 {
			begun = sim.setup.Scenario.BatchPools[i-1].Replicas
		}
		uses = append(uses, PoolUse{Name: cmp.Or(x.name, "pool"), Hours: x.hours(),
			Cost: x.scaled.Price * x.hours(), Started: x.starts - begun})
	}
	return uses
}
