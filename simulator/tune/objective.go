package tune

import "github.com/tidefill/tidefill/simulator"

// objective combines the objectives of all runs as simulator.MeanScore does over seeds and
// simulator.Overall over scenarios. It is negative if one of the runs is unsafe.
func (t *Tuning) objective(seeds []uint64, results map[runKey]simulator.Result) float64 {
	var means []float64
	for i := range t.Scenarios {
		var values []float64
		for _, seed := range seeds {
			key := runKey{i, seed}
			values = append(values, t.runObjective(key, results[key]))
		}
		means = append(means, simulator.MeanScore(values))
	}
	return simulator.Overall(means, false)
}

// runObjective returns the harvest as a share of the harvest with the unchanged configuration,
// scored as by simulator.Score with the scenario's own goal for the loss. That of a safe run is
// multiplied by the share of deadlines met, and by the GPU hours before as a share of those now.
func (t *Tuning) runObjective(key runKey, r simulator.Result) float64 {
	before := t.before[key]
	allowed := t.Scenarios[key.scenario].Scenario.Goals.Loss
	loss := r.Loss
	if allowed > 0 {
		loss += simulator.MaxLoss - allowed
	}
	value := simulator.Score(float64(r.Batch.Useful), float64(max(1, before.Batch.Useful)), loss)
	if value < 0 {
		return value
	}
	value *= float64(1+r.Batch.Met) / float64(1+r.Batch.Deadlines)
	if r.GPUHours > 0 && before.GPUHours > 0 {
		value *= before.GPUHours / r.GPUHours
	}
	return value
}
