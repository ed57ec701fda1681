package oracle

import "github.com/tidefill/tidefill/simulator"

// Bound is the best that an oracle found for one scenario and seed. Results are stated as shares of
// it.
type Bound struct {
	// Name is E (in the engine, clairvoyant), G (at the gateway, in hindsight), F (fluid) or LP
	// (GPU hours).
	Name string `json:"name"`
	// Useful is the harvest: prompt and answer tokens of lines answered before the end. 0: the
	// oracle does not bound the harvest.
	Useful float64 `json:"useful_tokens,omitempty"`
	// Work is the same in seconds of engine iteration, as in simulator.Batch.
	Work float64 `json:"work_s,omitempty"`
	// Loss is what it costs interactive users, in points of attainment.
	Loss float64 `json:"loss_points"`
	// GPUHours is the least that the deadlines need, with interactive traffic served; BatchGPUHours
	// is the part for batch work. 0: the oracle does not bound the cost.
	GPUHours      float64 `json:"gpu_hours,omitempty"`
	BatchGPUHours float64 `json:"batch_gpu_hours,omitempty"`
	// Infeasible names the jobs whose deadlines no policy could meet: the LP can't with 97 % of the
	// capacity.
	Infeasible []string `json:"infeasible,omitempty"`
	// Margin is the share by which the bound may be wrong by its nature: about 5 % for a fluid
	// bound, none for a search.
	Margin float64 `json:"margin,omitempty"`
	// Config is the daemon's configuration that attains the bound, if there is one.
	Config map[string]any `json:"config,omitempty"`
	// Note describes how the bound was found and what it leaves out.
	Note string `json:"note,omitempty"`
}

// MaxLoss is the loss that a bound may cost in points, the same as a policy.
const MaxLoss = simulator.MaxLoss

// BeatenBy reports whether a run harvested more than the bound at a loss that the bound was allowed
// too. Then the oracle is wrong.
func (b Bound) BeatenBy(useful, loss float64) bool {
	return b.Useful > 0 && loss <= max(b.Loss, MaxLoss) && useful > b.Useful*(1+b.Margin)
}

// UndercutBy reports whether a run that met every feasible deadline needed fewer GPU hours than the
// bound.
func (b Bound) UndercutBy(gpuHours float64) bool {
	return b.GPUHours > 0 && gpuHours < b.GPUHours*(1-b.Margin)
}
