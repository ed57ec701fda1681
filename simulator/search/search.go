// Package search finds good parameters of a policy by simulation, with the Nelder-Mead method of
// gonum. The method suits the problem: trials are few and expensive, their values are noisy, there
// are few parameters, and their effects are smooth.
//
// Every point is tried on all seeds, because one that is good on a single seed is often lucky. What
// is tried follows from the arguments alone.
package search

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"github.com/tidefill/tidefill/internal/portable"
)

// Dimension is the range of one parameter.
type Dimension struct {
	Low, High float64
	// Log spreads values evenly by ratio instead of by difference; then Low is above 0.
	Log bool
}

// at returns the value at a share of the way from Low to High.
func (d Dimension) at(share float64) float64 {
	if d.Log {
		return d.Low * portable.Exp(share*portable.Log(d.High/d.Low))
	}
	return d.Low + portable.Rounded(share*(d.High-d.Low))
}

// share is the inverse of at. A value outside the range is moved to its end.
func (d Dimension) share(value float64) float64 {
	value = min(max(value, d.Low), d.High)
	if d.Log {
		return portable.Log(value/d.Low) / portable.Log(d.High/d.Low)
	}
	return (value - d.Low) / (d.High - d.Low)
}

// Evaluate returns how good each point is on the first so many seeds; more is better.
type Evaluate func(points [][]float64, seeds int) ([]float64, error)

// Options bound a search.
type Options struct {
	// Budget is how many times a point may be tried on a seed, at least 4 Seeds.
	Budget int
	// Seeds is how many seeds each point is tried on, at least 2.
	Seeds int
}

const (
	// minSeeds is the fewest seeds on which a point is tried.
	minSeeds = 2
	// firstStep is the distance of the first points from the start, as a share of each range.
	firstStep = 0.25
	// patience times the number of dimensions is how many steps without an improvement above
	// minImprovement end a search.
	patience       = 10
	minImprovement = 1e-4
)

// Result is the best point of a search.
type Result struct {
	Point []float64
	Value float64
	// Spent is how much of the budget was used.
	Spent int
}

// Maximize searches from a start, which is tried first. So the result is never worse than the start
// on the seeds of the search.
func Maximize(space []Dimension, start []float64, o Options, evaluate Evaluate) (Result, error) {
	if err := check(space, start, o); err != nil {
		return Result{}, err
	}
	s := &searcher{space: space, options: o, evaluate: evaluate, best: trial{value: math.Inf(-1)}}
	simplex, err := s.first(start)
	if err != nil {
		return Result{}, err
	}
	if len(simplex) > len(space) && s.trialsLeft() > 0 {
		if err := s.improve(simplex); err != nil {
			return Result{}, err
		}
	}
	return Result{Point: s.point(s.best.shares), Value: s.best.value, Spent: s.spent}, nil
}

func check(space []Dimension, start []float64, o Options) error {
	if len(space) == 0 || len(start) != len(space) {
		return fmt.Errorf("search: %d dimensions and a start of %d", len(space), len(start))
	}
	if o.Seeds < minSeeds {
		return fmt.Errorf("search: %d seeds, want at least %d: a result on one seed may be luck",
			o.Seeds, minSeeds)
	}
	if o.Budget < 4*o.Seeds {
		return fmt.Errorf("search: a budget of %d, want at least four times the %d seeds", o.Budget,
			o.Seeds)
	}
	for _, d := range space {
		if !(d.High > d.Low) || d.Log && !(d.Low > 0) {
			return errors.New("search: a range must increase, and be above 0 if it is logarithmic")
		}
	}
	return nil
}

type searcher struct {
	space    []Dimension
	options  Options
	evaluate Evaluate
	spent    int
	best     trial
}

// trial is a point, as shares of the ranges, and its value.
type trial struct {
	shares []float64
	value  float64
}

func (s *searcher) trialsLeft() int { return (s.options.Budget - s.spent) / s.options.Seeds }

func (s *searcher) point(shares []float64) []float64 {
	point := make([]float64, len(shares))
	for i, d := range s.space {
		point[i] = d.at(shares[i])
	}
	return point
}

// fold mirrors a share that lies outside of 0 to 1 into that range. The method knows no bounds. If
// such a point were moved to the nearest end instead, the value would not change beyond it, and a
// search that starts at an end would stay there.
func fold(share float64) float64 { return math.Abs(share - 2*math.Round(share/2)) }

// try evaluates points, folded into their ranges, as many as the budget allows.
func (s *searcher) try(points ...[]float64) ([]trial, error) {
	points = points[:min(len(points), s.trialsLeft())]
	trials := make([]trial, len(points))
	values := make([][]float64, len(points))
	for i, p := range points {
		trials[i].shares = slices.Clone(p)
		for k, share := range p {
			trials[i].shares[k] = fold(share)
		}
		values[i] = s.point(trials[i].shares)
	}
	s.spent += len(points) * s.options.Seeds
	found, err := s.evaluate(values, s.options.Seeds)
	if err != nil {
		return nil, err
	}
	for i := range trials {
		trials[i].value = found[i]
		if trials[i].value > s.best.value {
			s.best = trials[i]
		}
	}
	return trials, nil
}

// first tries the start and, for each dimension, a point a step away.
func (s *searcher) first(start []float64) ([]trial, error) {
	origin := make([]float64, len(s.space))
	for i, d := range s.space {
		origin[i] = d.share(start[i])
	}
	points := [][]float64{origin}
	for i := range origin {
		p := slices.Clone(origin)
		if p[i] += firstStep; p[i] > 1 {
			p[i] -= 2 * firstStep
		}
		points = append(points, p)
	}
	return s.try(points...)
}

// improve runs the Nelder-Mead method from the first points until the budget is spent or no step
// helps.
func (s *searcher) improve(simplex []trial) error {
	method := &optimize.NelderMead{}
	for _, t := range simplex {
		method.InitialVertices = append(method.InitialVertices, t.shares)
		method.InitialValues = append(method.InitialValues, -t.value)
	}
	var failure error
	problem := optimize.Problem{
		Func: func(shares []float64) float64 {
			trials, err := s.try(shares)
			if err != nil || len(trials) == 0 {
				failure = err
				return math.Inf(1)
			}
			return -trials[0].value
		},
		Status: func() (optimize.Status, error) {
			if failure != nil {
				return optimize.Failure, failure
			}
			return optimize.NotTerminated, nil
		},
	}
	_, err := optimize.Minimize(problem, simplex[0].shares, &optimize.Settings{
		FuncEvaluations: s.trialsLeft(),
		Converger: &optimize.FunctionConverge{Absolute: minImprovement,
			Iterations: patience * len(s.space)},
	}, method)
	return err
}
