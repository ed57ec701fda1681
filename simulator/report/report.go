package report

import (
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Version is that of the schema of result.json. It changes when a key changes its meaning or is
// removed; keys may be added at any time.
const Version = 1

// Report is the result of a comparison: result.json.
type Report struct {
	Version   int        `json:"version"`
	Scenarios []Scenario `json:"scenarios"`
	// Overall is how policies fared over all scenarios, in the order of the first scenario.
	Overall []Overall `json:"overall"`
}

// Scenario is the result of one scenario. The caller fills in all fields but those that Judge fills
// in.
type Scenario struct {
	Name     string  `json:"name"`
	About    string  `json:"about,omitempty"`
	File     string  `json:"file"`
	Hours    float64 `json:"hours"`
	Replicas int     `json:"replicas"` // at the beginning
	Profile  Profile `json:"profile"`
	SLO      SLO     `json:"slo"`
	// Traffic describes how interactive traffic was made from a trace; nil: it was not.
	Traffic *Traffic `json:"traffic,omitempty"`
	Seeds   []Seed   `json:"seeds"`
	// Policies lists those that were asked for first, then the baselines.
	Policies []Policy `json:"policies"`
	// Conclusion says in sentences what each policy harvests and costs, and which one is the best.
	// Filled in by Judge.
	Conclusion []string `json:"conclusion"`
	// Best names what scores are shares of. Filled in by Judge.
	Best string `json:"best,omitempty"`
	// Warnings lists what a reader must not miss. Filled in by Judge.
	Warnings []string `json:"warnings,omitempty"`

	// ComparedWith is the file of another scenario that a goal compares with.
	ComparedWith string `json:"-"`
	// Additions are what the caller knows beyond the runs.
	Additions Additions `json:"-"`

	goals scenario.Goals
}

// Profile describes how accurate the engine's cost model is.
type Profile struct {
	Name       string `json:"name"`
	Calibrated bool   `json:"calibrated"` // fitted to iterations of a real server
	// MeanError is that of an iteration, in percent; nil: not stated.
	MeanError *float64 `json:"mean_error_pct,omitempty"`
}

// Error describes the profile's accuracy in words.
func (p Profile) Error() string {
	switch {
	case !p.Calibrated:
		return "not calibrated"
	case p.MeanError == nil:
		return "measured, error not stated"
	}
	return "measured, mean error of an iteration " + fixed(*p.MeanError, 1) + " %"
}

// SLO is the objective of interactive users.
type SLO struct {
	TTFT       float64 `json:"ttft_ms"`
	TPOT       float64 `json:"tpot_ms"`
	Attainment float64 `json:"attainment"` // of the run without batch work, at least
}

// Seed holds what all policies share on one seed: the run without batch work.
type Seed struct {
	Seed    uint64                `json:"seed"`
	NoBatch simulator.Interactive `json:"no_batch"`
	// Timeline is that of the run without batch work; nil: none was recorded.
	Timeline *simulator.Timeline `json:"no_batch_timeline,omitempty"`
}

// Overall is how a policy fared over all scenarios.
type Overall struct {
	Name string `json:"name"`
	// Score is defined by simulator.Overall; NaN: not known.
	Score     Number `json:"score"`
	Scenarios int    `json:"scenarios"`
	// Unsafe counts the scenarios in which the loss exceeds what is allowed on one of the seeds.
	Unsafe int `json:"unsafe_scenarios"`
	Missed int `json:"feasible_deadlines_missed"`
	// WorstLoss is the largest loss of any scenario and seed, in points.
	WorstLoss Number `json:"worst_loss_points"`
	// OfCaps is the geometric mean of the harvest relative to the best fixed cap of each scenario;
	// OfCap, relative to the best single one. Scenarios in which either is unsafe are left out.
	// NaN: none remains.
	OfCaps Number `json:"harvest_of_best_caps"`
	OfCap  Number `json:"harvest_of_best_single_cap"`
	// GoalsMet counts those of the judged Goals that are met; Unjudged are the goals without a
	// figure.
	GoalsMet int `json:"goals_met"`
	Goals    int `json:"goals"`
	Unjudged int `json:"goals_not_judged"`
}
