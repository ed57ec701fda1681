package autoscale

import (
	"math"
	"slices"
)

// supply is the work that can be done by each instant.
type supply struct {
	cells []cell
	sum   []float64 // from now to the end of each cell
}

// until returns the work that can be done by an instant. After the last cell its rate continues.
func (s supply) until(t float64) float64 {
	if t <= 0 || len(s.cells) == 0 {
		return 0
	}
	c, _ := slices.BinarySearchFunc(s.cells, t, func(c cell, t float64) int {
		if c.to < t {
			return -1
		}
		return 1
	})
	c = min(c, len(s.cells)-1)
	before := 0.0
	if c > 0 {
		before = s.sum[c-1]
	}
	return s.within(c, before, t)
}

// within returns the work that can be done by an instant of a cell. before is the work of the
// earlier cells.
func (s supply) within(c int, before, t float64) float64 {
	if t <= s.cells[c].from {
		return before
	}
	rate := (s.sum[c] - before) / (s.cells[c].to - s.cells[c].from)
	return before + rate*(t-s.cells[c].from)
}

// when returns the instant by which an amount of work is done. +Inf: never.
func (s supply) when(work float64) float64 {
	c, _ := slices.BinarySearch(s.sum, work)
	if c == len(s.sum) {
		if c == 0 {
			return math.Inf(1)
		}
		c--
	}
	before := 0.0
	if c > 0 {
		before = s.sum[c-1]
	}
	length := s.cells[c].to - s.cells[c].from
	rate := (s.sum[c] - before) / length
	if work <= before {
		return s.cells[c].from
	}
	if rate <= 0 {
		return math.Inf(1)
	}
	return s.cells[c].from + (work-before)/rate
}
