package simulator

import "cmp"

// PoolUse is the replica hours of a pool and their cost.
type PoolUse struct {
	Name string `json:"name"`
	// Hours of replicas, from being asked for to the end. Cost is at the pool's price.
	Hours float64 `json:"gpu_hours"`
	Cost  float64 `json:"cost"`
	// Started counts the replicas that were asked for during the run.
	Started int `json:"started"`
}

// uses returns the usage of the pools, in the scenario's order.
func (sim *simulation) uses() []PoolUse {
	var uses []PoolUse
	for i, x := range sim.pools {
		begun := sim.setup.Scenario.Pool.Replicas
		if i > 0 {
			begun = sim.setup.Scenario.BatchPools[i-1].Replicas
		}
		uses = append(uses, PoolUse{Name: cmp.Or(x.name, "pool"), Hours: x.hours(),
			Cost: x.scaling.Price * x.hours(), Started: x.starts - begun})
	}
	return uses
}
