package report

import (
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Version of the schema of result.json. It changes when a key changes its meaning or goes; new ones
// may come.
const Version = 1

// Report is all that a comparison found: result.json.
type Report struct {
	Version   int        `json:"version"`
	Scenarios []Scenario `json:"scenarios"`
	// Overall is how policies fared over all scenarios, in the order of the first.
	Overall []Overall `json:"overall"`
}

// Scenario is what became of one. The caller fills in all but what is said to be judged.
type Scenario struct {
	Name     string  `json:"name"`
	About    string  `json:"about,omitempty"`
	File     string  `json:"file"`
	Hours    float64 `json:"hours"`
	Replicas int     `json:"replicas"` // at the beginning
	Profile  Profile `json:"profile"`
	SLO      SLO     `json:"slo"`
	// Traffic says how interactive traffic was made from a trace; nil: there is none.
	Traffic *Traffic `json:"traffic,omitempty"`
	Seeds   []Seed   `json:"seeds"`
	// Policies that were asked for come first, then the baselines.
	Policies []Policy `json:"policies"`
	// Best names what scores are shares of: an oracle, or the best run seen. Judged.
	Best string `json:"best,omitempty"`
	// Aloud is what a reader must not miss. Judged.
	Warnings []string `json:"warnings,omitempty"`

	// Beside is the file of another scenario that a goal compares with.
	ComparedWith string `json:"-"`

	goals scenario.Goals
}

// Profile says how far the engine's law can be believed.
type Profile struct {
	Name       string `json:"name"`
	Calibrated bool   `json:"calibrated"` // fitted to iterations of a real server
	// MeanError is of an iteration, in percent; nil: not stated.
	MeanError *float64 `json:"mean_error_pct,omitempty"`
}

// Error is the profile's in words.
func (p Profile) Error() string {
	switch {
	case !p.Calibrated:
		return "not calibrated"
	case p.MeanError == nil:
		return "measured, error not stated"
	}
	return "measured, mean error of an iteration " + fixed(*p.MeanError, 1) + " %"
}

// SLO is what interactive users are promised.
type SLO struct {
	TTFT       float64 `json:"ttft_ms"`
	TPOT       float64 `json:"tpot_ms"`
	Attainment float64 `json:"attainment"` // of the quiet day, at least
}

// Seed is a day: what was drawn, the day without batch work, and the best that anyone could have
// done.
type Seed struct {
	Seed    uint64                `json:"seed"`
	NoBatch simulator.Interactive `json:"no_batch"`
	Oracles []oracle.Bound        `json:"oracles,omitempty"`
}

// Overall is a policy over all scenarios.
type Overall struct {
	Name string `json:"name"`
	// Score is the geometric mean over scenarios, at most 0.8 with a feasible deadline missed; NaN:
	// not known.
	Score     Number `json:"score"`
	Scenarios int    `json:"scenarios"`
	Missed    int    `json:"feasible_deadlines_missed"`
	// WorstLoss is the largest loss of any scenario and seed, in points.
	WorstLoss Number `json:"worst_loss_points"`
	// OfCaps is the geometric mean of the harvest over that of the best fixed cap of each scenario;
	// OfCap, over that of the best single one. NaN: none was run, or none is safe.
	OfCaps   Number `json:"harvest_of_best_caps"`
	OfCap    Number `json:"harvest_of_best_single_cap"`
	GoalsMet int    `json:"goals_met"`
	Goals    int    `json:"goals"`
}
