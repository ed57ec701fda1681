package report

import "github.com/tidefill/tidefill/simulator"

// Policy is one that ran, on all seeds.
type Policy struct {
	// Name is unique in a scenario, the same in all: headroom, or fixed per_runner=18.
	Name string `json:"name"`
	// Law is the flow control policy, Settings what of its configuration makes it this one.
	Flow     string   `json:"flowcontrol_policy"`
	Settings []string `json:"settings,omitempty"`
	// Baseline says that nobody asked for it by name: it is there to compare with.
	Baseline bool `json:"baseline"`
	// Runs by seed, in the order of Scenario.Seeds.
	Runs []simulator.Result `json:"runs"`
	// Spread is what it does if the engine's law is at an edge of what the measurements allow.
	Spread []SpreadRun `json:"spread,omitempty"`

	// What follows is judged.

	// BestHere: of the settings of its law the best in this scenario; BestOverall: the best single
	// one over all.
	BestHere    bool   `json:"best_here,omitempty"`
	BestOverall bool   `json:"best_overall,omitempty"`
	Loss        Figure `json:"loss_points"`
	WorstLoss   Figure `json:"worst_5_minutes_loss_points"`
	TTFTRatio   Figure `json:"ttft_p99_of_no_batch"`
	TPOTRatio   Figure `json:"tpot_p99_of_no_batch"`
	Useful      Figure `json:"useful_tokens"`
	Work        Figure `json:"work_s"`
	Wasted      Figure `json:"wasted_share"` // of all batch tokens computed
	GPUHours    Figure `json:"gpu_hours"`
	// Feasible deadlines within the run over all seeds, those of them that were met, and how many
	// could not be.
	Feasible   int `json:"feasible_deadlines"`
	Met        int `json:"feasible_deadlines_met"`
	Infeasible int `json:"infeasible_deadlines"`
	// Score as simulator.Score defines it.
	Score  Figure  `json:"score"`
	Shares []Share `json:"shares_of_oracles,omitempty"`
	Goals  []Goal  `json:"goals"`
}

// Edge is a result under another law of the engine.
type SpreadRun struct {
	CostModel string `json:"cost_model"` // low or high: all coefficients at their 5 or 95 % bounds
	// Fault is why there is none.
	Fault  string  `json:"fault,omitempty"`
	Loss   float64 `json:"loss_points"`
	Useful int64   `json:"useful_tokens"`
}

// Share is the harvest as a share of an oracle's.
type Share struct {
	Oracle string `json:"oracle"`
	Figure
}

// Goal is one of the scenario's, judged.
type Goal struct {
	Name string `json:"name"`
	// Figure is what is judged, Bound what it must keep to: at most, or at least if AtLeast. Figure
	// is not known if it is NaN.
	Figure  Number `json:"figure"`
	Bound   Number `json:"bound"`
	AtLeast bool   `json:"at_least"`
	Met     bool   `json:"met"`
	// Note says how the figure was made, or why there is none.
	Note string `json:"note,omitempty"`
}
