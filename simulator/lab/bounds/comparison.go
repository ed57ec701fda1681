package bounds

import (
	"context"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
	"github.com/tidefill/tidefill/simulator/report"
)

// Comparison is a comparison of policies with each other and with bounds.
type Comparison struct {
	*compare.Comparison
	// Oracles searches for the best result that any policy could have reached. Without it, only
	// bounds that need no search are computed.
	Oracles bool
	// OracleSeeds is the number of seeds, from the first, that are searched. 0: all.
	OracleSeeds int
	// OracleRuns is the number of runs that an oracle may spend on a scenario of one hour. Longer
	// scenarios get fewer.
	OracleRuns int
	// Cache keeps the results of oracles. Nil: they are not kept.
	Cache *Cache
}

// Report is a report with the bounds that it is judged by: result.json.
type Report struct {
	report.Report
	// Bounds has those of each scenario, in the order of Scenarios.
	Bounds []Scenario `json:"bounds"`
}

// Scenario holds the bounds of one scenario.
type Scenario struct {
	Name string `json:"name"`
	// Seeds are in the order of the report.
	Seeds  []Seed      `json:"seeds"`
	Shares []Share     `json:"shares_of_oracles,omitempty"`
	Spread []SpreadRun `json:"spread,omitempty"`
}

// Seed holds the oracles' bounds on one seed.
type Seed struct {
	Seed    uint64         `json:"seed"`
	Oracles []oracle.Bound `json:"oracles,omitempty"`
}

// Share is the harvest of a policy as a share of an oracle's, over the seeds that were searched.
type Share struct {
	Policy string `json:"policy"`
	Oracle string `json:"oracle"`
	report.Figure
}

// Run returns the judged report.
func (c *Comparison) Run(ctx context.Context) (*Report, error) {
	sim, err := c.Simulate(ctx)
	if err != nil {
		return nil, err
	}
	r := &Report{Report: sim.Report, Bounds: make([]Scenario, len(c.Scenarios))}
	for i := range r.Bounds {
		r.Bounds[i].Name, r.Bounds[i].Seeds = r.Scenarios[i].Name, make([]Seed, len(c.Seeds))
	}
	if err := c.runOracles(ctx, sim, r); err != nil {
		return nil, err
	}
	if err := c.runSpread(ctx, r); err != nil {
		return nil, err
	}
	r.judge()
	return r, nil
}

// judge judges the report by the bounds.
func (r *Report) judge() {
	for i := range r.Scenarios {
		s, b := &r.Scenarios[i], &r.Bounds[i]
		b.addShares(s)
		s.Additions = b.additions(s)
	}
	r.Judge()
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		s.Warnings = append(s.Warnings, r.Bounds[i].warnings(s)...)
	}
}

// minSearchRuns is the number of runs below which the search of an oracle finds nothing useful.
const minSearchRuns = 12

// searchRuns returns the number of runs that an oracle may spend on a scenario: fewer for a longer
// one.
func (c *Comparison) searchRuns(s *compare.Scenario) int {
	return min(c.OracleRuns, max(minSearchRuns,
		int(float64(c.OracleRuns)/s.Scenario.Horizon.Hours())))
}

// searchedSeeds returns the number of seeds that are searched.
func (c *Comparison) searchedSeeds() int {
	switch {
	case !c.Oracles:
		return 0
	case c.OracleSeeds > 0:
		return min(c.OracleSeeds, len(c.Seeds))
	}
	return len(c.Seeds)
}

// searchTime returns the simulated time of all searches if each spends all its runs.
func (c *Comparison) searchTime() (total time.Duration) {
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		runs := c.searchedSeeds() * len(searchingOracles) * c.searchRuns(s)
		total += s.Scenario.Horizon * time.Duration(runs)
	}
	return total
}

// bound returns the bound of an oracle.
func bound(all []oracle.Bound, name string) (oracle.Bound, bool) {
	i := slices.IndexFunc(all, func(b oracle.Bound) bool { return b.Name == name })
	if i < 0 {
		return oracle.Bound{}, false
	}
	return all[i], true
}
