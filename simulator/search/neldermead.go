package search

import (
	"cmp"
	"slices"
)

// vertex is a corner of a simplex.
type vertex struct {
	at    []float64
	value float64
}

// simplex is a search for the maximum of a function by the method of Nelder and Mead (1965), with
// the coefficients of Gao and Han (2012). It has a vertex more than there are dimensions.
type simplex struct {
	vertices []vertex // sorted by step, the highest value first
	// evaluate returns the values at points. It returns fewer when the search must end.
	evaluate func(points ...[]float64) ([]float64, error)
}

// step replaces the worst vertex by a better point on the line through the center of the others.
// Without one, it moves all vertices toward the best. It reports whether the search goes on.
func (s *simplex) step() (more bool, err error) {
	slices.SortStableFunc(s.vertices, func(a, b vertex) int {
		return cmp.Compare(b.value, a.value)
	})
	// In one dimension, shrinking by 1-1/n would merge the vertices.
	n := float64(max(2, len(s.vertices)-1))
	expand, contract := 1+2/n, 0.75-1/(2*n)
	last := len(s.vertices) - 1
	worst, second := s.vertices[last].value, s.vertices[last-1].value
	reflected, more, err := s.beyond(1)
	if !more {
		return false, err
	}
	next := reflected
	accepted := reflected.value > second
	switch {
	case reflected.value > s.vertices[0].value:
		if next, more, err = s.beyond(expand); more && next.value < reflected.value {
			next = reflected
		}
	case accepted:
	case reflected.value > worst:
		next, more, err = s.beyond(contract)
		accepted = next.value >= reflected.value
	default:
		next, more, err = s.beyond(-contract)
		accepted = next.value > worst
	}
	switch {
	case !more:
		return false, err
	case accepted:
		s.vertices[last] = next
		return true, nil
	}
	return s.shrink(1 - 1/n)
}

// beyond evaluates the point beyond the center of all vertices but the worst, at a multiple of the
// worst's distance from it. A negative multiple lies between the worst and the center.
func (s *simplex) beyond(multiple float64) (v vertex, more bool, err error) {
	last := len(s.vertices) - 1
	v.at = make([]float64, last)
	for i := range v.at {
		center := 0.0
		for _, other := range s.vertices[:last] {
			center += other.at[i] / float64(last)
		}
		v.at[i] = center + multiple*(center-s.vertices[last].at[i])
	}
	values, err := s.evaluate(v.at)
	if err != nil || len(values) == 0 {
		return v, false, err
	}
	v.value = values[0]
	return v, true, nil
}

// shrink moves all vertices toward the best, to a share of their distance from it.
func (s *simplex) shrink(share float64) (more bool, err error) {
	best := s.vertices[0]
	var points [][]float64
	for _, v := range s.vertices[1:] {
		for i := range v.at {
			v.at[i] = best.at[i] + share*(v.at[i]-best.at[i])
		}
		points = append(points, v.at)
	}
	values, err := s.evaluate(points...)
	for i, value := range values {
		s.vertices[i+1].value = value
	}
	return err == nil && len(values) == len(points), err
}
