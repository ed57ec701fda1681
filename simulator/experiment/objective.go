package experiment

import "github.com/tidefill/tidefill/simulator"

// objective returns the geometric mean over scenarios of the mean objective over seeds.
func (t *Tuning) objective(seeds []uint64, results map[runKey]simulator.Result) float64 {
	var means []float64
	for i := range t.Scenarios {
		sum := 0.0
		for _, seed := range seeds {
			key := runKey{i, seed}
			sum += t.runObjective(key, results[key])
		}
		means = append(means, sum/float64(len(seeds)))
	}
	return simulator.GeometricMean(means)
}

// runObjective returns the harvest as a share of the harvest with the unchanged configuration,
// scored as by simulator.Score with the scenario's own goal for the loss. It is multiplied by the
// share of deadlines met, and by the GPU hours before as a share of those now.
func (t *Tuning) runObjective(key runKey, r simulator.Result) float64 {
	before := t.before[key]
	allowed := t.Scenarios[key.scenario].Scenario.Goals.Loss
	loss := r.Loss
	if allowed > 0 {
		loss += 1 - allowed // Score allows one point
	}
	value := simulator.Score(float64(r.Batch.Useful), float64(max(1, before.Batch.Useful)), loss)
	value *= float64(1+r.Batch.Met) / float64(1+r.Batch.Deadlines)
	if r.GPUHours > 0 && before.GPUHours > 0 {
		value *= before.GPUHours / r.GPUHours
	}
	return value
}
