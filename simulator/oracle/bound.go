package oracle

// Bound is the best that an oracle knows of for one scenario and seed: what results are quoted as a
// share of.
type Bound struct {
	// Name is E (in the engine, clairvoyant), G (at the gateway, in hindsight), F (fluid) or LP
	// (GPU hours).
	Name string `json:"name"`
	// Useful is the harvest: prompt and answer tokens of lines answered before the end. 0: this
	// oracle bounds no harvest.
	Useful float64 `json:"useful_tokens,omitempty"`
	// Work is the same in seconds of engine iteration, as in simulator.Batch.
	Work float64 `json:"work_s,omitempty"`
	// Loss is what it costs interactive users, in points.
	Loss float64 `json:"loss_points"`
	// GPUHours is the least that the deadlines need, with interactive traffic served; Batch is what
	// of it is for batch work. 0: this oracle bounds no cost.
	GPUHours      float64 `json:"gpu_hours,omitempty"`
	BatchGPUHours float64 `json:"batch_gpu_hours,omitempty"`
	// Infeasible names the jobs whose deadlines nobody could have met: the LP with 97 % of the
	// capacity can't.
	Infeasible []string `json:"infeasible,omitempty"`
	// Margin is the share by which the bound may be off by its nature: a fluid bound is one only to
	// about 5 %, a search none at all.
	Margin float64 `json:"margin,omitempty"`
	// Config is what of the daemon's configuration attains the bound, where one does: told with it,
	// the day comes out so.
	Config map[string]any `json:"config,omitempty"`
	// Note says what a reader must know to believe it: how it was searched, what it leaves out.
	Note string `json:"note,omitempty"`
}

// MostLoss is how many points of loss a bound may cost: what a policy may.
const MaxLoss = 1

// BeatenBy reports whether a run got more out of the pool than the bound says anyone can, at a loss
// that the bound was allowed too. Then the oracle is wrong, not the run good.
func (b Bound) BeatenBy(useful, loss float64) bool {
	return b.Useful > 0 && loss <= max(b.Loss, MaxLoss) && useful > b.Useful*(1+b.Margin)
}

// UndercutBy reports whether a run that met every feasible deadline needed fewer GPU hours than the
// bound says anyone can.
func (b Bound) UndercutBy(gpuHours float64) bool {
	return b.GPUHours > 0 && gpuHours < b.GPUHours*(1-b.Margin)
}
