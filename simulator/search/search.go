// Package search finds good parameters of a policy by simulation, with the Nelder-Mead method. The
// method suits the problem: a trial is expensive and its value is noisy, there are few parameters,
// and the value changes smoothly with each of them.
//
// Every point is tried on all seeds, because a good value on a single seed is often chance. The
// same arguments give the same trials.
package search

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tidefill/tidefill/internal/portable"
)

// Dimension is the range of one parameter.
type Dimension struct {
	Low, High float64
	// Log selects a logarithmic scale. Low must then be above 0.
	Log bool
}

// value returns the value at a position of the range: 0 is Low, 1 is High.
func (d Dimension) value(share float64) float64 {
	if d.Log {
		return d.Low * portable.Exp(share*portable.Log(d.High/d.Low))
	}
	return d.Low + share*(d.High-d.Low)
}

// position is the inverse of value. A value outside the range is moved to its end.
func (d Dimension) position(value float64) float64 {
	value = min(max(value, d.Low), d.High)
	if d.Log {
		return portable.Log(value/d.Low) / portable.Log(d.High/d.Low)
	}
	return (value - d.Low) / (d.High - d.Low)
}

// Evaluate returns the value of each point, measured on the given number of seeds. Higher is
// better. The seeds must be the same in every call.
type Evaluate func(points [][]float64, seeds int) ([]float64, error)

// Options limit a search.
type Options struct {
	// Budget is the maximum number of simulations. Trying a point takes one for each seed. At least
	// 4 times Seeds.
	Budget int
	// Seeds is the number of seeds on which each point is tried, at least 2.
	Seeds int
}

const (
	// minSeeds is the minimum of Options.Seeds.
	minSeeds = 2
	// firstStep is the distance of the first points from the start, as a share of each range.
	firstStep = 0.25
	// stalledSteps, times the number of dimensions, is the number of consecutive steps without an
	// improvement of at least minImprovement after which a search ends.
	stalledSteps   = 10
	minImprovement = 1e-4
)

// Result is the best point of a search.
type Result struct {
	Point []float64
	Value float64
	// Spent is the number of simulations used of the budget.
	Spent int
}

// Maximize searches for the point with the highest value, beginning at start. Since it tries start
// first, the result is at least as good as start on the seeds of the search.
func Maximize(space []Dimension, start []float64, o Options, evaluate Evaluate) (Result, error) {
	if err := check(space, start, o); err != nil {
		return Result{}, err
	}
	s := &searcher{space: space, options: o, evaluate: evaluate, best: vertex{value: math.Inf(-1)}}
	first, err := s.firstSimplex(start)
	if err != nil {
		return Result{}, err
	}
	if len(first) > len(space) {
		if err := s.improve(first); err != nil {
			return Result{}, err
		}
	}
	return Result{Point: s.point(s.best.at), Value: s.best.value, Spent: s.spent}, nil
}

func check(space []Dimension, start []float64, o Options) error {
	if len(space) == 0 || len(start) != len(space) {
		return fmt.Errorf(
			"search: %d dimensions and a start of %d values, want as many of each, at "+
				"least one", len(space), len(start))
	}
	if o.Seeds < minSeeds {
		return fmt.Errorf(
			"search: %d seeds, want at least %d: a good result on one seed may be chance",
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
	best     vertex // its position in each dimension is from 0 to 1
}

// trialsLeft returns the number of points that the rest of the budget allows.
func (s *searcher) trialsLeft() int { return (s.options.Budget - s.spent) / s.options.Seeds }

func (s *searcher) point(position []float64) []float64 {
	point := make([]float64, len(position))
	for i, d := range s.space {
		point[i] = d.value(position[i])
	}
	return point
}

// fold mirrors a position outside of 0 to 1 into that range, since the Nelder-Mead method has no
// bounds. If the position were moved to the nearest end instead, the value would not change beyond
// the end, and a search that starts at an end would not leave it.
func fold(position float64) float64 {
	return math.Abs(position - 2*math.Round(position/2))
}

// try evaluates the points at the given positions, folded into their ranges. If the budget does not
// allow all of them, it evaluates the first ones.
func (s *searcher) try(positions ...[]float64) ([]float64, error) {
	positions = positions[:min(len(positions), s.trialsLeft())]
	if len(positions) == 0 {
		return nil, nil
	}
	folded, points := make([][]float64, len(positions)), make([][]float64, len(positions))
	for i, position := range positions {
		for _, x := range position {
			folded[i] = append(folded[i], fold(x))
		}
		points[i] = s.point(folded[i])
	}
	s.spent += len(points) * s.options.Seeds
	values, err := s.evaluate(points, s.options.Seeds)
	if err != nil {
		return nil, err
	}
	for i, value := range values {
		if value > s.best.value {
			s.best = vertex{folded[i], value}
		}
	}
	return values, nil
}

// firstSimplex tries the start and, for each dimension, a point at the distance firstStep from it.
func (s *searcher) firstSimplex(start []float64) ([]vertex, error) {
	origin := make([]float64, len(s.space))
	for i, d := range s.space {
		origin[i] = d.position(start[i])
	}
	positions := [][]float64{origin}
	for i := range origin {
		p := slices.Clone(origin)
		if p[i] += firstStep; p[i] > 1 {
			p[i] -= 2 * firstStep
		}
		positions = append(positions, p)
	}
	values, err := s.try(positions...)
	vertices := make([]vertex, len(values))
	for i, value := range values {
		vertices[i] = vertex{positions[i], value}
	}
	return vertices, err
}

// improve searches from the first points. It ends when the budget is spent or the value no longer
// improves.
func (s *searcher) improve(vertices []vertex) error {
	method := simplex{vertices: vertices, evaluate: s.try}
	reached := s.best.value
	for stalled := 0; stalled < stalledSteps*len(s.space); stalled++ {
		if more, err := method.step(); err != nil || !more {
			return err
		}
		if s.best.value > reached+minImprovement {
			reached, stalled = s.best.value, -1
		}
	}
	return nil
}
