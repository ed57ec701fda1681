package scaling

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/lab/oracle/gpuhours"
)

// capacity is how many replicas an interactive scaler pays for in each slot, and how many of them
// bring no harvest because they start or drain. Its zero value is what the traffic needs at every
// moment, all of it ready.
type capacity struct{ Paid, Idle []float64 }

// problem returns the scenario as a problem for the oracle of GPU hours: the measured time and the
// first pool alone.
func (s fluidScenario) problem(owned capacity) (gpuhours.Problem, error) {
	var p gpuhours.Problem
	pool := s.Pools[0]
	for i := range int(s.Length / slotLength) {
		rate := s.Rate(s.Warm + time.Duration(i)*slotLength + slotLength/2)
		c := gpuhours.Period{Seconds: slotLength.Seconds(), Rates: make([]float64, pool.Max+1)}
		if pool.Interactive.Served {
			c.Need = float64(min(replicasNeeded(pool, rate), pool.Max))
		} else {
			rate = 0
		}
		idle := 0.0
		if owned.Paid != nil {
			c.Need = min(max(c.Need, owned.Paid[i]), float64(pool.Max))
		}
		if owned.Idle != nil {
			idle = owned.Idle[i]
		}
		for n := 1; n <= pool.Max; n++ {
			if working := float64(n) - idle; working > 0 {
				c.Rates[n] = working * s.Achieved * harvestRate(pool, rate/working)
			}
		}
		p.Periods = append(p.Periods, c)
	}
	for _, j := range s.Jobs {
		p.Jobs = append(p.Jobs, gpuhours.Job{Release: (j.At - s.Warm).Seconds(),
			Due: (j.Deadline - s.Warm).Seconds(), Work: j.Work})
	}
	return p, p.Validate()
}

// feasible returns for each job whether the oracle meets its deadline with 97 % of the harvest.
func (s fluidScenario) feasible() ([]bool, error) {
	p, err := s.problem(capacity{})
	if err != nil {
		return nil, err
	}
	return gpuhours.Feasible(p, 0.97)
}

// minimum returns the oracle's solution for the feasible jobs.
func (s fluidScenario) minimum(owned capacity) (gpuhours.Solution, error) {
	can, err := s.feasible()
	if err != nil {
		return gpuhours.Solution{}, err
	}
	p, err := s.problem(owned)
	if err != nil {
		return gpuhours.Solution{}, err
	}
	i := -1
	p.Jobs = slices.DeleteFunc(p.Jobs, func(gpuhours.Job) bool { i++; return !can[i] })
	solution, err := gpuhours.Solve(p)
	if err != nil {
		return solution, fmt.Errorf("oracle of GPU hours: %w", err)
	}
	return solution, nil
}
