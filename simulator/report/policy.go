package report

import "github.com/tidefill/tidefill/simulator"

// Policy is the result of one policy on all seeds.
type Policy struct {
	// Name is unique in a scenario and the same in all: headroom, or fixed per_runner=18.
	Name string `json:"name"`
	// Flow is the flow-control policy, Settings the settings that distinguish it from others with
	// the same policy.
	Flow     string   `json:"flowcontrol_policy"`
	Settings []string `json:"settings,omitempty"`
	// Baseline reports that nobody asked for it by name: it is there to compare with.
	Baseline bool `json:"baseline"`
	// Runs by seed, in the order of Scenario.Seeds.
	Runs []simulator.Result `json:"runs"`

	// What follows is judged.

	// BestHere marks the best settings of a flow-control policy in this scenario, BestOverall the
	// best single ones over all scenarios. These fields and those below are filled in by Judge.
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
	// Feasible counts the deadlines within the run over all seeds, without those that are known to
	// be infeasible. Met counts those of them that were met, and Infeasible the others.
	Feasible   int `json:"feasible_deadlines"`
	Met        int `json:"feasible_deadlines_met"`
	Infeasible int `json:"infeasible_deadlines"`
	// Score is defined by simulator.Score.
	Score Figure `json:"score"`
	// OfAlone is the lowest attainment of the most important class of flows as a share of that
	// alone; unknown where there is one class. The runs have it.
	OfAlone Figure `json:"-"`
	Goals   []Goal `json:"goals"`
}

// Goal is the verdict on one of the scenario's goals.
type Goal struct {
	Name string `json:"name"`
	// Figure is what is judged; NaN: not known. Bound is its limit: an upper one, or a lower one if
	// AtLeast.
	Figure  Number `json:"figure"`
	Bound   Number `json:"bound"`
	AtLeast bool   `json:"at_least"`
	Met     bool   `json:"met"`
	// Note describes how the figure was made, or why there is none.
	Note string `json:"note,omitempty"`

	users bool // it limits what batch work costs interactive users
}
