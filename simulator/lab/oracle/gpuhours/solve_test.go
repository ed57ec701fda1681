package gpuhours

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// randomProblem returns a small problem: hours of few replicas, and jobs between full hours. With
// unit gains its least cost is an integer number of replica-hours, because conditions over
// intervals make an integral program.
func randomProblem(rng *rand.Rand, unit bool) Problem {
	var p Problem
	hours := 2 + rng.IntN(3)
	for range hours {
		most := 1 + rng.IntN(3)
		c := Period{Seconds: 3600, Need: float64(rng.IntN(most + 1)), Rates: []float64{0}}
		gain := 1 + rng.Float64()
		for n := range most {
			if unit {
				gain = 1
			} else {
				gain *= 0.6 + 0.4*rng.Float64()
			}
			c.Rates = append(c.Rates, c.Rates[n]+gain)
		}
		p.Periods = append(p.Periods, c)
	}
	for range 1 + rng.IntN(4) {
		from := rng.IntN(hours)
		to := from + 1 + rng.IntN(hours-from)
		work := float64(1+rng.IntN(3)) * 3600
		if !unit {
			work *= rng.Float64() + 0.01
		}
		p.Jobs = append(p.Jobs, Job{Release: float64(from) * 3600, Due: float64(to) * 3600,
			Work: work})
	}
	return p
}

// brute tries every number of replicas on a grid in every hour.
func brute(p Problem, grid float64) (float64, bool) {
	best, found := math.Inf(1), false
	n := make([]float64, len(p.Periods))
	var try func(i int, hours float64)
	try = func(i int, hours float64) {
		if hours >= best {
			return
		}
		if i == len(n) {
			if meetsDeadlines(p, n) {
				best, found = hours, true
			}
			return
		}
		for n[i] = p.Periods[i].Need; n[i] <= float64(
			len(p.Periods[i].Rates)-1)+1e-9; n[i] += grid {
			try(i+1, hours+n[i])
		}
	}
	try(0, 0)
	return best, found
}

// meetsDeadlines runs the jobs hour by hour, earliest deadline first, with n[h] replicas in hour h,
// and reports whether it meets every deadline.
func meetsDeadlines(p Problem, n []float64) bool {
	left := make([]float64, len(p.Jobs))
	for i, j := range p.Jobs {
		left[i] = j.Work
	}
	for h, c := range p.Periods {
		capacity := c.rate(n[h]) * 3600
		for capacity > 0 {
			next := -1
			for i, j := range p.Jobs {
				if left[i] > 1e-6 && j.Release <= float64(h)*3600 &&
					(next < 0 || j.Due < p.Jobs[next].Due) {
					next = i
				}
			}
			if next < 0 {
				break
			}
			done := math.Min(capacity, left[next])
			left[next] -= done
			capacity -= done
		}
		for i, j := range p.Jobs {
			if j.Due <= float64(h+1)*3600 && left[i] > 1e-6 {
				return false
			}
		}
	}
	return true
}

func TestSolveAgainstBruteForce(t *testing.T) {
	solved := 0
	for seed := range uint64(3000) {
		p := randomProblem(rand.New(rand.NewPCG(seed, 1)), true)
		want, feasible := brute(p, 1)
		got, err := Solve(p)
		if feasible != (err == nil) {
			t.Fatalf("seed %d: feasible %v by brute force, error %v", seed, feasible, err)
		}
		if !feasible {
			if !errors.Is(err, ErrInfeasible) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		solved++
		if math.Abs(got.Hours-want) > 1e-5 {
			t.Fatalf("seed %d: %v hours, brute force finds %v", seed, got.Hours, want)
		}
	}
	if solved < 1000 {
		t.Errorf("only %d problems were feasible", solved)
	}
}

func TestSolveBoundsTheGrid(t *testing.T) {
	const grid = 0.25
	for seed := range uint64(300) {
		p := randomProblem(rand.New(rand.NewPCG(seed, 2)), false)
		got, err := Solve(p)
		want, feasible := brute(p, grid)
		if err != nil {
			if feasible {
				t.Fatalf("seed %d: feasible by brute force, but %v", seed, err)
			}
			continue
		}
		if feasible && (got.Hours > want+1e-6 || want > got.Hours*(1+gainTolerance)+grid*float64(
			len(p.Periods))) {
			t.Fatalf("seed %d: %v hours, brute force on a grid of %v finds %v", seed, got.Hours,
				grid, want)
		}
	}
}

func TestFeasible(t *testing.T) {
	p := Problem{
		Periods: []Period{{Seconds: 7200, Rates: []float64{0, 1}}},
		Jobs: []Job{
			{Release: 0, Due: 7200, Work: 3600},
			// could be met alone, but not together with the first
			{Release: 600, Due: 4200, Work: 3600},
			{Release: 1200, Due: 7200, Work: 3000},
		},
	}
	got, err := Feasible(p, 0.97)
	if err != nil || !got[0] || got[1] || !got[2] {
		t.Errorf("feasible %v (%v), want the first and the last", got, err)
	}
	if got, _ := Feasible(p, 0.9); got[2] {
		t.Errorf("the last deadline is feasible with 0.9 of the rates, want infeasible")
	}
}

func TestValidate(t *testing.T) {
	good := Period{Seconds: 60, Rates: []float64{0, 1}}
	for name, p := range map[string]Problem{
		"no time":        {Periods: []Period{{Rates: []float64{0}}}},
		"no rates":       {Periods: []Period{{Seconds: 1}}},
		"need too high":  {Periods: []Period{{Seconds: 1, Need: 2, Rates: []float64{0, 1}}}},
		"due first":      {Periods: []Period{good}, Jobs: []Job{{Release: 10, Due: 10, Work: 1}}},
		"due after end":  {Periods: []Period{good}, Jobs: []Job{{Due: 61, Work: 1}}},
		"nothing to do":  {Periods: []Period{good}, Jobs: []Job{{Due: 60}}},
		"infinite needs": {Periods: []Period{{Seconds: 1, Need: math.Inf(1), Rates: []float64{0}}}},
	} {
		if _, err := Solve(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The test checks that a problem of three days with 20 jobs is solved within seconds.
func TestSolveIsFast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	var p Problem
	for range 432 {
		c := Period{Seconds: 600, Need: float64(8 + rng.IntN(10)), Rates: []float64{0}}
		load := 0.3 * rng.Float64()
		for n := range 25 {
			// An engine's harvest is close to straight in its load, with a bend.
			c.Rates = append(c.Rates, max(0, float64(n+1)-load*c.Need-max(
				0, 0.2*(c.Need-float64(n)))))
		}
		p.Periods = append(p.Periods, c)
	}
	for range 20 {
		from, hours := rng.Float64()*48, []float64{1, 4, 24}[rng.IntN(3)]
		p.Jobs = append(p.Jobs, Job{Release: from * 3600, Due: (from + hours) * 3600,
			Work: hours * 3600 * (1 + 5*rng.Float64())})
	}
	begin := time.Now()
	s, err := Solve(p)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("took %v for %+v", took, s)
	} else {
		t.Logf("%v for %+v", took, s)
	}
}
