// Package search finds good parameters of a policy by trying them: points spread evenly over the
// space on few seeds, the better ones again on all, then steps along the coordinates from the best.
// It is simple on purpose. Trials are noisy, few and dear, parameters few and their effects smooth,
// and an operator can follow what it did.
//
// What is tried and in which order follows from the arguments alone. Nothing is decided on one
// seed: what looks good on one day is often luck.
package search

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/internal/portable"
)

// Dimension is one parameter's range.
type Dimension struct {
	Low, High float64
	// Log spreads values evenly by ratio instead of by difference; then Low is above 0.
	Log bool
}

// at is the value at a share of the way from Low to High.
func (d Dimension) at(share float64) float64 {
	share = min(max(share, 0), 1)
	if d.Log {
		return d.Low * portable.Exp(share*portable.Log(d.High/d.Low))
	}
	return d.Low + portable.Rounded(share*(d.High-d.Low))
}

// share is where a value lies.
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
	// Seeds is how many there are, at least 2.
	Seeds int
}

const (
	// fewSeeds is how many the first look takes: more than one.
	screeningSeeds = 2
	// spreadShare of the budget goes to the first look, so that as much is left to follow up what
	// it finds.
	screeningShare = 0.5
	// keep one in so many of the first look for the second.
	promoteOneIn = 4
	// firstStep and lastStep are shares of a range.
	firstStep = 1.0 / 8
	lastStep  = 1.0 / 128
)

// Best is what a search found.
type Result struct {
	Point []float64
	Value float64
	// Spent is how much of the budget was used.
	Spent int
}

// Maximize searches from a start, which is tried first, so that what is found is never worse on the
// seeds of the search.
func Maximize(space []Dimension, start []float64, o Options, evaluate Evaluate) (Result, error) {
	if err := check(space, start, o); err != nil {
		return Result{}, err
	}
	s := &searcher{space: space, options: o, evaluate: evaluate}
	first := make([]float64, len(space))
	for i, d := range space {
		first[i] = d.share(start[i])
	}
	if err := s.screen(first); err != nil {
		return Result{}, err
	}
	if err := s.refine(); err != nil {
		return Result{}, err
	}
	return Result{Point: s.point(s.best.shares), Value: s.best.value, Spent: s.spent}, nil
}

func check(space []Dimension, start []float64, o Options) error {
	if len(space) == 0 || len(start) != len(space) {
		return fmt.Errorf("search: %d dimensions and a start of %d", len(space), len(start))
	}
	if o.Seeds < screeningSeeds {
		return fmt.Errorf("search: %d seeds, want at least %d: what is good on one day may be luck",
			o.Seeds, screeningSeeds)
	}
	if o.Budget < 4*o.Seeds {
		return fmt.Errorf("search: a budget of %d, want at least four times the %d seeds", o.Budget,
			o.Seeds)
	}
	for _, d := range space {
		if !(d.High > d.Low) || d.Log && !(d.Low > 0) {
			return errors.New("search: a range must go up, and from above 0 if it is logarithmic")
		}
	}
	return nil
}

type searcher struct {
	space    []Dimension
	options  Options
	evaluate Evaluate
	spent    int
	best     trial // on all seeds
}

// tried is a point, by shares of its ranges, and how good it is.
type trial struct {
	shares []float64
	value  float64
}

func (s *searcher) point(shares []float64) []float64 {
	out := make([]float64, len(shares))
	for i, d := range s.space {
		out[i] = d.at(shares[i])
	}
	return out
}

// try evaluates points, as many as the budget has left.
func (s *searcher) try(points [][]float64, seeds int) ([]trial, error) {
	points = points[:min(len(points), (s.options.Budget-s.spent)/seeds)]
	if len(points) == 0 {
		return nil, nil
	}
	var values [][]float64
	for _, p := range points {
		values = append(values, s.point(p))
	}
	s.spent += len(points) * seeds
	good, err := s.evaluate(values, seeds)
	if err != nil {
		return nil, err
	}
	all := make([]trial, len(points))
	for i, p := range points {
		all[i] = trial{p, good[i]}
	}
	return all, nil
}

// spread tries the start and points all over the space on few seeds, and the best of them on all.
func (s *searcher) screen(start []float64) error {
	points := [][]float64{start}
	most := int(float64(s.options.Budget)*screeningShare) / screeningSeeds
	for n := 1; n < max(2, most); n++ {
		points = append(points, quasiRandom(n, len(s.space)))
	}
	first, err := s.try(points, screeningSeeds)
	if err != nil {
		return err
	}
	better := slices.Clone(first)
	slices.SortStableFunc(better, func(a, b trial) int { return cmp.Compare(b.value, a.value) })
	again := [][]float64{start} // is among them, however it did
	for _, t := range better[:max(1, len(better)/promoteOneIn)] {
		if !slices.Equal(t.shares, start) {
			again = append(again, t.shares)
		}
	}
	second, err := s.try(again, s.options.Seeds)
	if err != nil {
		return err
	}
	s.best = second[0]
	for _, t := range second[1:] {
		if t.value > s.best.value {
			s.best = t
		}
	}
	return nil
}

// even is the n-th point of a sequence that fills the space evenly, however many are taken: steps
// of powers of the root of x^(d+1) = x+1, each modulo one (Roberts, 2018; for one dimension the
// golden ratio).
func quasiRandom(n, dimensions int) []float64 {
	root := 2.0
	for range 64 {
		power := 1.0
		for range dimensions {
			power *= root
		}
		root = (portable.Rounded(float64(dimensions)*power*root) + 1) / (portable.Rounded(
			float64(dimensions+1)*power) - 1)
	}
	point := make([]float64, dimensions)
	step := 1.0
	for i := range point {
		step /= root
		at := 0.5 + portable.Rounded(float64(n)*step)
		point[i] = at - float64(int(at))
	}
	return point
}

// refine steps along the coordinates from the best, both ways at once, with steps that shrink when
// none helps.
func (s *searcher) refine() error {
	for step := firstStep; step >= lastStep && s.spent+s.options.Seeds <= s.options.Budget; {
		var around [][]float64
		for i := range s.space {
			for _, by := range []float64{step, -step} {
				moved := slices.Clone(s.best.shares)
				if moved[i] = min(max(moved[i]+by, 0), 1); moved[i] != s.best.shares[i] {
					around = append(around, moved)
				}
			}
		}
		found, err := s.try(around, s.options.Seeds)
		if err != nil {
			return err
		}
		from := s.best
		together := slices.Clone(from.shares) // all that helped, at once
		helped := 0
		for i := range together {
			gain := 0.0
			for _, t := range found {
				if t.shares[i] != from.shares[i] && t.value-from.value > gain {
					gain, together[i] = t.value-from.value, t.shares[i]
				}
			}
			if gain > 0 {
				helped++
			}
		}
		if helped > 1 {
			more, err := s.try([][]float64{together}, s.options.Seeds)
			if err != nil {
				return err
			}
			found = append(found, more...)
		}
		for _, t := range found {
			if t.value > s.best.value {
				s.best = t
			}
		}
		if s.best.value == from.value {
			step /= 2
		}
	}
	return nil
}
