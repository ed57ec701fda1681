package scenario

import (
	"errors"
	"time"
)

// Goals are what a policy is judged by. 0: not judged.
type Goals struct {
	// Loss is how many points of attainment batch work may cost.
	Loss float64 `yaml:"loss"`
	// Worst5Minutes is how many points it may cost over any five minutes.
	Worst5Minutes float64 `yaml:"worst_5_minutes"`
	// TTFT is how many times that of the run without batch work the 99th percentile of TTFT may be.
	TTFT float64 `yaml:"ttft"`
	// HarvestOfGateway and HarvestOfEngine are the least shares of the harvest of the oracles G and
	// E; HarvestOfCap, how many times that of the best fixed cap the harvest must be.
	HarvestOfGateway float64 `yaml:"harvest_of_gateway"`
	HarvestOfEngine  float64 `yaml:"harvest_of_engine"`
	HarvestOfCap     float64 `yaml:"harvest_of_cap"`
	// Beside compares the harvest with that of another scenario.
	ComparedWith Comparison `yaml:"compared_with"`
	// Deadlines is the share of feasible ones that must be met.
	Deadlines float64 `yaml:"deadlines"`
	// Flagged is how soon a job must be called infeasible after it has become so.
	FlaggedWithin time.Duration `yaml:"flagged_within"`
	// Wasted is the largest share of batch tokens that may be computed in vain.
	Wasted float64 `yaml:"wasted"`
	// GPUHours and BatchGPUHours are how many times the least possible (the LP's) all GPU hours,
	// and those due to batch work, may be.
	GPUHours      float64 `yaml:"gpu_hours"`
	BatchGPUHours float64 `yaml:"batch_gpu_hours"`
}

// Comparison is with another scenario, that this one differs from in one thing.
type Comparison struct {
	// Scenario is its file, from this one's folder.
	Scenario string `yaml:"scenario"`
	// Harvest is the least share of its harvest.
	Harvest float64 `yaml:"harvest"`
}

func (g Goals) validate() error {
	var all problems
	for _, goal := range []struct {
		key         string
		value, most float64
	}{
		{"loss", g.Loss, 100}, {"worst_5_minutes", g.Worst5Minutes, 100}, {"ttft", g.TTFT, 1000},
		{"harvest_of_gateway", g.HarvestOfGateway, 1}, {"harvest_of_engine", g.HarvestOfEngine, 1},
		{"harvest_of_cap", g.HarvestOfCap, 1000},
		{"compared_with.harvest", g.ComparedWith.Harvest, 1}, {"deadlines", g.Deadlines, 1},
		{"wasted", g.Wasted, 1},
		{"gpu_hours", g.GPUHours, 1000}, {"batch_gpu_hours", g.BatchGPUHours, 1000},
	} {
		all.check(goal.value >= 0 && goal.value <= goal.most,
			"goals.%s is %v, want 0 for no goal or up to %v", goal.key, goal.value, goal.most)
	}
	all.check(g.FlaggedWithin >= 0 && g.FlaggedWithin <= time.Hour,
		"goals.flagged_within is %s, want 0 for no goal or up to 1h", g.FlaggedWithin)
	all.check((g.ComparedWith.Scenario == "") == (g.ComparedWith.Harvest == 0),
		"goals.compared_with has scenario %q and harvest %v; give both or neither", g.ComparedWith.Scenario,
		g.ComparedWith.Harvest)
	return errors.Join(all...)
}
