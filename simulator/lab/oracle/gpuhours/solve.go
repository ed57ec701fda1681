package gpuhours

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// ErrInfeasible is returned if the largest number of replicas does not meet every deadline.
// Feasible returns which deadlines can be met.
var ErrInfeasible = errors.New("not every deadline can be met")

// Solution is the smallest number of replica-hours that meets every deadline.
type Solution struct {
	Hours  float64 // all replica-hours
	Bought float64 // those beyond Period.Need
}

// Solve returns the solution with the fewest replica-hours, or ErrInfeasible.
func Solve(p Problem) (Solution, error) {
	if err := p.Validate(); err != nil {
		return Solution{}, err
	}
	var s Solution
	for _, c := range p.Periods {
		s.Hours += c.Need * c.Seconds / 3600
	}
	list := p.segments()
	bought, err := newProgram(list, conditions(list, p.Jobs)).solve()
	if err != nil {
		return Solution{}, err
	}
	s.Bought = bought
	s.Hours += bought
	return s, nil
}

// Feasible reports for each job whether its deadline can be met. Jobs are accepted in the order of
// their release. A job is accepted if all replicas, at the given share of their rates, can meet its
// deadline and those of all jobs accepted before.
func Feasible(p Problem, share float64) ([]bool, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	order := make([]int, len(p.Jobs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.Jobs[a].Release, p.Jobs[b].Release),
			cmp.Compare(p.Jobs[a].Due, p.Jobs[b].Due))
	})
	accepted := Problem{Periods: p.Periods}
	feasible := make([]bool, len(p.Jobs))
	for _, i := range order {
		accepted.Jobs = append(accepted.Jobs, p.Jobs[i])
		if feasible[i] = accepted.fits(share); !feasible[i] {
			accepted.Jobs = accepted.Jobs[:len(accepted.Jobs)-1]
		}
	}
	return feasible, nil
}

// fits reports whether all replicas, at a share of their rates, meet every deadline.
func (p Problem) fits(share float64) bool {
	list := p.segments()
	for _, c := range conditions(list, p.Jobs) {
		capacity := 0.0
		for _, s := range list[c.from:c.to] {
			capacity += s.free
			for _, o := range s.offers {
				capacity += o.gain * o.seconds
			}
		}
		if c.work > share*capacity*(1+1e-9) {
			return false
		}
	}
	return true
}

// program is the linear program. It counts in units in which values are near one: replica-hours,
// and the work of one hour of the best offer.
type program struct {
	unit       float64 // work of one hour of the best offer
	conditions []condition
	short      []float64  // for each condition: the work beyond the free harvest
	variables  []variable // what can be bought
}

// variable is the number of replica-hours bought of an offer.
type variable struct {
	segment int     // index of the offer's segment
	gain    float64 // work per replica-hour, in the program's unit
	most    float64 // upper bound, in replica-hours
}

func newProgram(list []segment, conditions []condition) *program {
	p := &program{}
	for _, s := range list {
		for _, o := range s.offers {
			p.unit = max(p.unit, o.gain*3600)
		}
	}
	for i, s := range list {
		for _, o := range s.offers {
			p.variables = append(p.variables, variable{segment: i,
				gain: o.gain * 3600 / p.unit, most: o.seconds / 3600})
		}
	}
	for _, c := range conditions {
		short := c.work
		for _, s := range list[c.from:c.to] {
			short -= s.free
		}
		if short <= 0 {
			continue
		}
		if p.unit == 0 {
			p.unit = 1 // no segment has offers
		}
		p.conditions = append(p.conditions, c)
		p.short = append(p.short, short/p.unit)
	}
	return p
}

// tolerance is the amount by which a solution may violate a condition, in replica-hours.
const tolerance = 1e-7

// solve returns the fewest replica-hours to buy. It starts without any condition, and adds those
// that the solution violates until it violates none.
func (p *program) solve() (float64, error) {
	inUse, bounded := make([]bool, len(p.conditions)), make([]bool, len(p.variables))
	for i := range p.conditions {
		capacity := 0.0
		for k, v := range p.variables {
			if p.counts(i, k) {
				capacity += v.gain * v.most
			}
		}
		if p.short[i] > capacity+tolerance {
			return 0, fmt.Errorf("%w: %.3g replica-hours are missing", ErrInfeasible,
				p.short[i]-capacity)
		}
	}
	x := make([]float64, len(p.variables))
	for {
		if !p.tighten(x, inUse, bounded) {
			sum := 0.0
			for _, v := range x {
				sum += v
			}
			return sum, nil
		}
		var err error
		if x, err = p.simplex(inUse, bounded); err != nil {
			return 0, err
		}
	}
}

// tighten adds the most violated conditions to those in use, and all violated upper bounds. It
// returns false if x violates none.
func (p *program) tighten(x []float64, inUse, bounded []bool) bool {
	added := false
	for i, v := range p.variables {
		if !bounded[i] && x[i] > v.most+tolerance {
			bounded[i], added = true, true
		}
	}
	type violation struct {
		condition int
		by        float64
	}
	var violated []violation
	for i := range p.conditions {
		got := 0.0
		for k, v := range p.variables {
			if p.counts(i, k) {
				got += v.gain * x[k]
			}
		}
		if by := p.short[i] - got; !inUse[i] && by > tolerance {
			violated = append(violated, violation{i, by})
		}
	}
	slices.SortFunc(violated, func(a, b violation) int {
		return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(a.condition, b.condition))
	})
	const atOnce = 5
	for _, b := range violated[:min(atOnce, len(violated))] {
		inUse[b.condition], added = true, true
	}
	return added
}

// artificialCost is the cost of the artificial variables that make up the initial solution, in
// replica-hours per unit of work. It is so high that the final solution contains none of them.
const artificialCost = 1e4

// simplex solves the program with the conditions and bounds in use. Its columns are the offers that
// a condition counts (nothing is bought of the others), a surplus for each condition, and for each
// row an initial basis: artificial harvest, or the slack of a bound.
func (p *program) simplex(inUse, bounded []bool) ([]float64, error) {
	conditions, bounds := chosen(inUse), chosen(bounded)
	var offers []int
	for k := range p.variables {
		if slices.ContainsFunc(conditions, func(c int) bool { return p.counts(c, k) }) {
			offers = append(offers, k)
		}
	}
	rows, surplus, begin := len(conditions)+len(bounds), len(offers), len(offers)+len(conditions)
	a := mat.NewDense(rows, begin+rows, nil)
	b, cost, basis := make([]float64, rows), make([]float64, begin+rows), make([]int, rows)
	for r := range rows {
		basis[r] = begin + r
		a.Set(r, basis[r], 1)
	}
	for r, c := range conditions {
		for column, k := range offers {
			if p.counts(c, k) {
				a.Set(r, column, p.variables[k].gain)
			}
		}
		a.Set(r, surplus+r, -1)
		b[r], cost[basis[r]] = p.short[c], artificialCost
	}
	for r, k := range bounds {
		a.Set(len(conditions)+r, slices.Index(offers, k), 1)
		b[len(conditions)+r] = p.variables[k].most
	}
	for column := range offers {
		// With equal costs, many solutions are equally good, and the simplex method may not end.
		// Small differences of the costs prevent that.
		cost[column] = 1 + 1e-7*float64(column)/float64(len(offers))
	}
	_, found, err := lp.Simplex(cost, a, b, 1e-10, basis)
	if err != nil {
		return nil, fmt.Errorf("solve for %d conditions and %d offers: %w", len(conditions),
			len(offers), err)
	}
	for r := range conditions {
		if found[begin+r] > tolerance {
			return nil, ErrInfeasible
		}
	}
	x := make([]float64, len(p.variables))
	for column, k := range offers {
		x[k] = max(0, found[column])
	}
	return x, nil
}

// counts reports whether the harvest of an offer counts for a condition.
func (p *program) counts(condition, offer int) bool {
	c, v := p.conditions[condition], p.variables[offer]
	return v.segment >= c.from && v.segment < c.to
}

// chosen returns the indices of the flags that are set.
func chosen(flags []bool) []int {
	var list []int
	for i, f := range flags {
		if f {
			list = append(list, i)
		}
	}
	return list
}
