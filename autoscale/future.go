package autoscale

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// future is how much batch work pools could do from now on, by how many replicas they have. Times
// are seconds from now.
type future struct {
	cells []cell
	pools []prospect // cheapest harvest first
	total int        // replicas that all pools may have
	// rates[i][c*(Max+1)+n] is what n replicas of pool i do in a second during cell c; NaN: not
	// worked out yet.
	rates [][]float64
}

// cell is a stretch of time in which nothing is expected to change.
type cell struct{ from, to float64 }

// prospect is a pool as far as it is known ahead.
type prospect struct {
	index   int // in State.Pools
	pool    *Pool
	replica replica
	share   float64 // achieved of predicted
	lasting float64 // share of spot replicas that are not being reclaimed
	lead    float64 // until a replica asked for now is ready
	// Per cell: interactive requests a second, replicas that will be there for them, and replicas
	// that are ready anyway, which is what there is until lead.
	requests  []float64
	needed    []int
	committed []int
}

// Cells are of a slot's length for the first days, then of an hour's.
const (
	fineFor    = 48 * time.Hour
	coarseCell = time.Hour
)

// grid cuts the time up to a horizon into cells, at the given instants among others.
func grid(now time.Time, horizon float64, at ...float64) []cell {
	bounds := slices.Clone(at)
	next := now.Truncate(slot).Add(slot)
	for {
		s := next.Sub(now).Seconds()
		if s >= horizon {
			break
		}
		bounds = append(bounds, s)
		if s < fineFor.Seconds() {
			next = next.Add(slot)
		} else {
			next = next.Add(coarseCell)
		}
	}
	bounds = append(bounds, horizon)
	slices.Sort(bounds)
	cells := make([]cell, 0, len(bounds))
	from := 0.0
	for _, to := range bounds {
		if to > from && to <= horizon {
			cells = append(cells, cell{from, to})
			from = to
		}
	}
	return cells
}

func newFuture(cells []cell, pools []prospect) *future {
	f := &future{cells: cells, pools: pools, rates: make([][]float64, len(pools))}
	for i, p := range pools {
		f.total += p.pool.Max
		f.rates[i] = make([]float64, len(cells)*(p.pool.Max+1))
		for j := range f.rates[i] {
			f.rates[i][j] = math.NaN()
		}
	}
	return f
}

// rate is the work that n replicas of a pool do in a second of a cell.
func (f *future) rate(i, c, n int) float64 {
	p := &f.pools[i]
	if n == 0 {
		return 0
	}
	known := &f.rates[i][c*(p.pool.Max+1)+n]
	if math.IsNaN(*known) {
		*known = float64(n) * p.share * p.lasting * p.replica.rate(p.requests[c]/float64(n))
	}
	return *known
}

// fill shares a number of replicas out to the pools, to the cheapest harvest first.
func (f *future) fill(level int, into []int) {
	for i, p := range f.pools {
		into[i] = min(level, p.pool.Max)
		level -= into[i]
	}
}

// supply is how much work can be done up to the end of each cell.
type supply struct {
	cells []cell
	sum   []float64 // up to the end of cell
}

// supply of the pools with soon replicas in all until a moment after each could be there, and then
// with later ones; with those needed for interactive traffic in any case. Without spot, replicas
// that may be reclaimed do not count.
func (f *future) supply(soon, later int, until float64, spot bool) supply {
	first, then := make([]int, len(f.pools)), make([]int, len(f.pools))
	f.fill(soon, first)
	f.fill(later, then)
	return f.sum(func(i, c int) int {
		p, from := &f.pools[i], f.cells[c].from
		switch {
		case !spot && p.lasting < 1:
			return 0
		case from < p.lead:
			return p.committed[c]
		case from < p.lead+until:
			return p.bound(c, first[i])
		}
		return p.bound(c, then[i])
	})
}

// free is the supply of the replicas that are needed in any case, if all others go now.
func (f *future) free() supply {
	return f.sum(func(i, c int) int {
		p := &f.pools[i]
		if f.cells[c].from < p.lead {
			return min(p.committed[c], p.bound(c, 0))
		}
		return p.bound(c, 0)
	})
}

// bound is the replicas of a cell if a level is asked for, and others are needed.
func (p *prospect) bound(c, level int) int {
	return min(max(p.needed[c], level, p.pool.Min), p.pool.Max)
}

// sum adds up what numbers of replicas do, given by pool and cell.
func (f *future) sum(replicas func(i, c int) int) supply {
	s := supply{cells: f.cells, sum: make([]float64, len(f.cells))}
	total := 0.0
	for c, cell := range f.cells {
		rate := 0.0
		for i := range f.pools {
			rate += f.rate(i, c, replicas(i, c))
		}
		total += portable.Rounded(rate * (cell.to - cell.from))
		s.sum[c] = total
	}
	return s
}

// until is how much can be done up to an instant. Past the last cell things go on as in it.
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

// within is how much can be done up to an instant of a cell, before which an amount has been.
func (s supply) within(c int, before, t float64) float64 {
	if t <= s.cells[c].from {
		return before
	}
	rate := (s.sum[c] - before) / (s.cells[c].to - s.cells[c].from)
	return before + portable.Rounded(rate*(t-s.cells[c].from))
}

// when is the instant at which as much work is done; +Inf: never.
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
