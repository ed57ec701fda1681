package main

import (
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
)

// askOracles asks for the best that anyone could have done on a day. Runs that were seen are a floor for what could be done from
// outside the engines.
func askOracles(s simulator.Setup, quiet simulator.Quiet, seen []simulator.Result, budget oracle.Budget) ([]oracle.Bound, error) {
	inside, err := oracle.Engine(s, quiet, budget)
	if err != nil {
		return nil, err
	}
	outside, _, err := oracle.Gateway(s, quiet, seen, budget)
	if err != nil {
		return nil, err
	}
	flow, err := oracle.Fluid(s)
	if err != nil {
		return nil, err
	}
	least, err := oracle.GPUHours(s, quiet)
	if err != nil {
		return nil, err
	}
	return []oracle.Bound{inside, outside, flow, least}, nil
}

// askFeasible asks which deadlines nobody could meet, and what the others need at least: it takes no run, so that every report of
// deadlines knows.
func askFeasible(s simulator.Setup, quiet simulator.Quiet) ([]oracle.Bound, error) {
	due := s.Scenario.JobStream.PerHour > 0
	for _, j := range s.Scenario.Jobs {
		due = due || j.Window > 0
	}
	if !due {
		return nil, nil
	}
	least, err := oracle.GPUHours(s, quiet)
	return []oracle.Bound{least}, err
}
