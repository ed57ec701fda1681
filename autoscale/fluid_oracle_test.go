package autoscale_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/oracle/gpuhours"
)

// Held is what is paid in any case, slot by slot, and which part of it brings no harvest: what an
// interactive scaler does. The zero value is what the traffic needs at every moment, all of it at
// work.
type Held struct{ Paid, Idle []float64 }

// Oracle is the story as the oracle of GPU hours takes it: the time that counts, and the first pool
// alone.
func (s Story) Oracle(held Held) (gpuhours.Problem, error) {
	var p gpuhours.Problem
	pool := s.Pools[0]
	for i := range int(s.Length / Slot) {
		rate := s.Rate(s.Warm + time.Duration(i)*Slot + Slot/2)
		c := gpuhours.Cell{Seconds: Slot.Seconds(), Rates: make([]float64, pool.Max+1)}
		if pool.Interactive.Served {
			c.Need = float64(min(Need(pool, rate), pool.Max))
		} else {
			rate = 0
		}
		idle := 0.0
		if held.Paid != nil {
			c.Need = min(max(c.Need, held.Paid[i]), float64(pool.Max))
		}
		if held.Idle != nil {
			idle = held.Idle[i]
		}
		for n := 1; n <= pool.Max; n++ {
			if working := float64(n) - idle; working > 0 {
				c.Rates[n] = working * s.Achieved * Harvest(pool, rate/working)
			}
		}
		p.Cells = append(p.Cells, c)
	}
	for _, j := range s.Jobs {
		p.Jobs = append(p.Jobs, gpuhours.Job{Release: (j.At - s.Warm).Seconds(),
			Due: (j.Deadline - s.Warm).Seconds(), Work: j.Work})
	}
	return p, p.Validate()
}

// Feasible are the jobs whose deadlines the oracle would meet with 97 % of the harvest.
func (s Story) Feasible() ([]bool, error) {
	p, err := s.Oracle(Held{})
	if err != nil {
		return nil, err
	}
	return gpuhours.Feasible(p, 0.97)
}

// Least is the oracle's answer for the feasible jobs.
func (s Story) Least(held Held) (gpuhours.Solution, error) {
	can, err := s.Feasible()
	if err != nil {
		return gpuhours.Solution{}, err
	}
	p, err := s.Oracle(held)
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
