package random

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Version is increased when the same number becomes another pool, so that stored pools are drawn
// again.
const Version = 5

// Source draws the pools of a family, by number.
type Source struct {
	Seed    uint64
	Family  Family
	Horizon time.Duration
	// Traces are recorded traffic to replay, if there is any.
	Traces []Trace
	// Metrics is how all pools are observed, if not as drawn.
	Metrics Metrics
	// Progress is called during the runs that a draw takes. An error that it returns ends the draw.
	// Nil: not called.
	Progress simulator.Progress
}

// Trace is a recorded file and its content.
type Trace struct {
	File    string
	Format  workload.Format
	Content *workload.Trace
}

// longest returns the most tokens of a request.
func (t Trace) longest() int {
	longest := 0
	for a := range workload.All(t.Content.Arrivals()) {
		longest = max(longest, a.Input+a.Output)
	}
	return longest
}

// longPrompt returns the 99th percentile of prompts.
func (t Trace) longPrompt() float64 {
	var prompts []int
	for a := range workload.All(t.Content.Arrivals()) {
		prompts = append(prompts, a.Input)
	}
	slices.Sort(prompts)
	return float64(prompts[len(prompts)*99/100])
}

// Pool is a scenario that was drawn, with its run without batch work.
type Pool struct {
	Number   int
	Scenario scenario.Scenario
	// Seed of its runs.
	Seed       uint64
	Trace      *workload.Trace // that the scenario names; nil: none
	Dimensions []Dimension
	// Drawn is the number of scenarios that were drawn until one was valid, and Tried the number of
	// runs without batch work that this took.
	Drawn, Tried int
	NoBatch      simulator.NoBatch
}

// Dimension is a property of a pool by which results are grouped.
type Dimension struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Setup returns the input of the pool's runs; the policy is open.
func (p Pool) Setup() simulator.Setup {
	s := simulator.Setup{Scenario: p.Scenario, Seed: p.Seed, Trace: p.Trace}
	s.Profile, _ = engine.ProfileNamed(p.Scenario.Pool.Profile)
	return s
}

// maxSeedNumber is the number of numbers that have seeds of their own for each seed of a source.
const maxSeedNumber = 100_000

// RunSeed returns the seed of the runs of a number.
func (s Source) RunSeed(number int) uint64 { return s.Seed*maxSeedNumber + uint64(number) }

// maxDrawn is the number of scenarios that are drawn for a number before its family is given up.
const maxDrawn = 50

// Draw returns the pool of a number, which is above 0.
func (s Source) Draw(number int) (Pool, error) {
	pool := Pool{Number: number, Seed: s.RunSeed(number)}
	for pool.Drawn < maxDrawn {
		d := s.draft(number, pool.Drawn)
		pool.Drawn++
		ok, err := d.fit(&pool)
		if errors.Is(err, simulator.ErrNoRequests) { // rare bursts have brought none
			continue
		}
		if err != nil {
			return Pool{}, fmt.Errorf("draw scenario %d of family %s: %w", number, s.Family.Name,
				err)
		}
		if ok {
			return pool, nil
		}
	}
	return Pool{}, fmt.Errorf("draw scenario %d of family %s: none of %d scenarios attains its "+
		"objectives without batch work", number, s.Family.Name, maxDrawn)
}

// Sketch returns the scenario of a number as it is drawn first, with the default objectives. It
// takes no run, and the scenario may miss its objectives without batch work.
func (s Source) Sketch(number int) Pool {
	d := s.draft(number, 0)
	pool := Pool{Number: number, Seed: s.RunSeed(number)}
	d.fill(&pool)
	return pool
}
