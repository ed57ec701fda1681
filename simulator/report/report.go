package report

import (
	"math"
	"strconv"

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

// Figure is over seeds.
type Figure struct {
	Mean  Number `json:"mean"`
	Worst Number `json:"worst"`
}

// Number is one that may not be known: NaN, which is null in JSON.
type Number float64

// Known reports whether there is one.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 10, 64), nil
}
