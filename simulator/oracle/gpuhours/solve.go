package gpuhours

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/tidefill/tidefill/internal/portable"
)

// ErrInfeasible reports that not even all replicas meet every deadline. Feasible returns which
// deadlines can be met.
var ErrInfeasible = errors.New("not every deadline can be met")

// Solution is the least that meets every deadline.
type Solution struct {
	// Hours are all replica-hours, Bought those beyond the need.
	Hours, Bought float64
}

// Solve returns the cheapest solution.
func Solve(p Problem) (Solution, error) {
	if err := p.Validate(); err != nil {
		return Solution{}, err
	}
	var s Solution
	for _, c := range p.Cells {
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
// their release, each if all those accepted so far can be met by replicas that do a share of their
// rates.
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
	taken := Problem{Cells: p.Cells}
	can := make([]bool, len(p.Jobs))
	for _, i := range order {
		taken.Jobs = append(taken.Jobs, p.Jobs[i])
		if can[i] = taken.fits(share); !can[i] {
			taken.Jobs = taken.Jobs[:len(taken.Jobs)-1]
		}
	}
	return can, nil
}

// fits reports whether all replicas, at a share of their rates, meet every deadline.
func (p Problem) fits(share float64) bool {
	list := p.segments()
	for _, c := range conditions(list, p.Jobs) {
		most := 0.0
		for _, s := range list[c.from:c.to] {
			most += s.free
			for _, o := range s.offers {
				most += portable.Rounded(o.gain * o.most)
			}
		}
		if c.work > share*most*(1+1e-9) {
			return false
		}
	}
	return true
}

// program is the linear program in units near one: replica-hours, and the work that the best offer
// brings in an hour.
type program struct {
	unit       float64
	conditions []condition
	short      []float64  // for each condition: the work beyond the free harvest
	variables  []variable // what can be bought
}

type variable struct {
	segment    int
	gain, most float64
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
			p.variables = append(p.variables, variable{i, o.gain * 3600 / p.unit, o.most / 3600})
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
			p.unit = 1 // nothing is for sale
		}
		p.conditions = append(p.conditions, c)
		p.short = append(p.short, short/p.unit)
	}
	return p
}

// tolerance is by how much a solution may violate a condition, in replica-hours.
const tolerance = 1e-7

// solve adds the conditions that a solution violates until there are none.
func (p *program) solve() (float64, error) {
	inUse, bounded := make([]bool, len(p.conditions)), make([]bool, len(p.variables))
	for i := range p.conditions {
		most := 0.0
		for k, v := range p.variables {
			if p.counts(i, k) {
				most += portable.Rounded(v.gain * v.most)
			}
		}
		if p.short[i] > most+tolerance {
			return 0, fmt.Errorf("%w: %.3g replica-hours are missing", ErrInfeasible,
				p.short[i]-most)
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

// tighten puts the most violated conditions in use, and the violated bounds; false: none is
// violated.
func (p *program) tighten(x []float64, inUse, bounded []bool) bool {
	found := false
	for i, v := range p.variables {
		if !bounded[i] && x[i] > v.most+tolerance {
			bounded[i], found = true, true
		}
	}
	type breach struct {
		condition int
		by        float64
	}
	var broken []breach
	for i := range p.conditions {
		got := 0.0
		for k, v := range p.variables {
			if p.counts(i, k) {
				got += portable.Rounded(v.gain * x[k])
			}
		}
		if by := p.short[i] - got; !inUse[i] && by > tolerance {
			broken = append(broken, breach{i, by})
		}
	}
	slices.SortFunc(broken, func(a, b breach) int {
		return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(a.condition, b.condition))
	})
	const atOnce = 5
	for _, b := range broken[:min(atOnce, len(broken))] {
		inUse[b.condition], found = true, true
	}
	return found
}

// artificialCost is the cost of an hour of artificial harvest, in hours bought. It makes an initial
// solution possible.
const artificialCost = 1e4

// simplex solves the program with the conditions and bounds in use. Its columns are the offers that
// a condition counts (the others stay unbought), a surplus for each condition, and for each row an
// initial basis: artificial harvest, or the slack of a bound.
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
		// Equal costs make many answers equally good, among which the simplex loses its way.
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

// counts reports whether an offer counts for a condition.
func (p *program) counts(condition, offer int) bool {
	c, v := p.conditions[condition], p.variables[offer]
	return v.segment >= c.from && v.segment < c.to
}

// chosen lists the indices that are true.
func chosen(flags []bool) []int {
	var list []int
	for i, f := range flags {
		if f {
			list = append(list, i)
		}
	}
	return list
}
