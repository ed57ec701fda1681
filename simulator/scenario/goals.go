package scenario

import (
	"errors"
	"time"
)

// Goals are the limits that a policy must keep. 0: no limit.
type Goals struct {
	// Loss is the attainment that batch work may cost, in points.
	Loss float64 `yaml:"loss"`
	// Worst5Minutes is the attainment that it may cost over any five minutes, in points.
	Worst5Minutes float64 `yaml:"worst_5_minutes"`
	// OfAlone is the least attainment of the requests of the most important class of flows, as a
	// share of what they attain without other classes and batch work.
	OfAlone float64 `yaml:"of_alone"`
	// TTFT bounds the 99th percentile of TTFT relative to the run without batch work.
	TTFT float64 `yaml:"ttft"`
	// TTFTAbove is the excess over that run that is allowed instead. Where first tokens take a few
	// milliseconds, nobody notices that they take twice as long.
	TTFTAbove time.Duration `yaml:"ttft_above"`
	// HarvestOfGateway and HarvestOfEngine are the least harvest relative to the oracles G and E;
	// HarvestOfCap, relative to the best fixed cap.
	HarvestOfGateway float64 `yaml:"harvest_of_gateway"`
	HarvestOfEngine  float64 `yaml:"harvest_of_engine"`
	HarvestOfCap     float64 `yaml:"harvest_of_cap"`
	// ComparedWith compares the harvest with that of another scenario.
	ComparedWith Comparison `yaml:"compared_with"`
	// Deadlines is the least share of feasible deadlines that are met.
	Deadlines float64 `yaml:"deadlines"`
	// FlaggedWithin is the longest time until a job is reported infeasible after it has become so.
	FlaggedWithin time.Duration `yaml:"flagged_within"`
	// Wasted is the largest share of batch tokens that may be computed for nothing.
	Wasted float64 `yaml:"wasted"`
	// GPUHours and BatchGPUHours bound all GPU hours, and those due to batch work, relative to the
	// least possible (the LP's).
	GPUHours      float64 `yaml:"gpu_hours"`
	BatchGPUHours float64 `yaml:"batch_gpu_hours"`
}

// Comparison is with another scenario, which should differ in one thing.
type Comparison struct {
	// Scenario is its file, relative to this one's folder.
	Scenario string `yaml:"scenario"`
	// Harvest is the least harvest, as a multiple of its harvest.
	Harvest float64 `yaml:"harvest"`
}

func (g Goals) validate() error {
	var all problems
	for _, goal := range []struct {
		key         string
		value, most float64
	}{
		{"loss", g.Loss, 100}, {"worst_5_minutes", g.Worst5Minutes, 100}, {"ttft", g.TTFT, 1000},
		{"of_alone", g.OfAlone, 1},
		{"harvest_of_gateway", g.HarvestOfGateway, 1}, {"harvest_of_engine", g.HarvestOfEngine, 1},
		{"harvest_of_cap", g.HarvestOfCap, 1000},
		{"compared_with.harvest", g.ComparedWith.Harvest, 1000}, {"deadlines", g.Deadlines, 1},
		{"wasted", g.Wasted, 1},
		{"gpu_hours", g.GPUHours, 1000}, {"batch_gpu_hours", g.BatchGPUHours, 1000},
	} {
		all.check(goal.value >= 0 && goal.value <= goal.most,
			"goals.%s is %v, want 0 for no goal or up to %v", goal.key, goal.value, goal.most)
	}
	all.check(g.FlaggedWithin >= 0 && g.FlaggedWithin <= time.Hour,
		"goals.flagged_within is %s, want 0 for no goal or up to 1h", g.FlaggedWithin)
	all.check(g.TTFTAbove >= 0 && g.TTFTAbove <= time.Hour && (g.TTFTAbove == 0 || g.TTFT > 0),
		"goals.ttft_above is %s and goals.ttft %v; want 0 for no alternative, or up to 1h beside "+
			"a ttft above 0", g.TTFTAbove, g.TTFT)
	all.check((g.ComparedWith.Scenario == "") == (g.ComparedWith.Harvest == 0),
		"goals.compared_with has scenario %q and harvest %v; give both or neither",
		g.ComparedWith.Scenario,
		g.ComparedWith.Harvest)
	return errors.Join(all...)
}
