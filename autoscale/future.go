package autoscale

import (
	"math"
	"slices"
	"time"
)

// future predicts the batch work that pools can do, by their numbers of replicas. Times are seconds
// from now.
type future struct {
	cells []cell
	pools []poolFuture // the cheapest harvest first
	total int          // sum of Pool.Max
	// rates[i][c*(Max+1)+n] caches the work per second of n replicas of pool i in cell c. NaN: not
	// computed yet.
	rates [][]float64
}

// cell is a time in which nothing is expected to change.
type cell struct{ from, to float64 }

// poolFuture is the prediction for a pool.
type poolFuture struct {
	index   int // in State.Pools
	pool    *PoolState
	replica replica
	share   float64 // of the predicted harvest, as measured
	harvest *harvest
	lasting float64 // share of the replicas that is not being reclaimed
	lead    float64 // until a replica requested now is ready
	// By cell: interactive requests per second; replicas that exist then for them; and replicas
	// that are ready then even if nothing is requested, which is all there is until lead.
	requests  []float64
	needed    []int
	committed []int
}

// Cells have the length of a slot for the first days, of an hour afterwards.
const (
	fineFor    = 48 * time.Hour
	coarseCell = time.Hour
)

// grid divides the time until a horizon into cells, with bounds at the given instants too.
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

func newFuture(cells []cell, pools []poolFuture) *future {
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

// unitCost returns the price of a unit of the pool's harvest. Replicas without prices cost 1.
func (p *poolFuture) unitCost() float64 {
	price := p.pool.Price
	if price <= 0 {
		price = 1
	}
	return price / max(p.share*p.lasting*p.replica.rate(0), 1e-9)
}

// predict fills in the values by cell.
func (p *poolFuture) predict(now time.Time, cells []cell, x *trackedPool) {
	p.requests, p.needed, p.committed = make([]float64, len(cells)), make([]int, len(cells)),
		make([]int, len(cells))
	if p.pool.Interactive.Served {
		band := 1 + x.forecast.band()
		for c, cell := range cells {
			middle := now.Add(seconds((cell.from + cell.to) / 2))
			p.requests[c] = x.forecast.at(middle)
			// Replicas are started before they are needed and stay for a while.
			top := max(p.requests[c], x.forecast.at(middle.Add(-slot)),
				x.forecast.at(middle.Add(slot)))
			p.needed[c] = min(p.replica.serve(top*band), p.pool.Max)
			if x.unknown {
				p.needed[c] = min(x.needed, p.pool.Max)
			}
		}
	}
	for _, r := range p.pool.Replicas {
		from := 0.0
		switch {
		case r.Phase == Draining || slices.Contains(x.giveUp, r.ID):
			continue
		case r.Phase == Starting:
			from = readyIn(now, r, x.lead)
		}
		for c, cell := range cells {
			if cell.from >= from && p.committed[c] < p.pool.Max {
				p.committed[c]++
			}
		}
	}
}

// readyIn returns the seconds until a starting replica is expected to be ready. One that is late is
// expected within a quarter of the time of a start.
func readyIn(now time.Time, r Replica, lead time.Duration) float64 {
	return max(r.Since.Add(lead).Sub(now), lead/4).Seconds()
}

// rate returns the work per second of n replicas of a pool in a cell.
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

// distribute divides a number of replicas among the pools, the cheapest harvest first.
func (f *future) distribute(replicas int, into []int) {
	for i, p := range f.pools {
		into[i] = min(replicas, p.pool.Max)
		replicas -= into[i]
	}
}

// supply returns the work that can be done with a number of replicas requested now, and another
// number requested after a time. Replicas for interactive traffic exist in any case. Without spot,
// replicas that may be reclaimed do not count.
func (f *future) supply(now, later int, after float64, spot bool) supply {
	first, then := make([]int, len(f.pools)), make([]int, len(f.pools))
	f.distribute(now, first)
	f.distribute(later, then)
	return f.sum(func(i, c int) int {
		p, from := &f.pools[i], f.cells[c].from
		switch {
		case !spot && p.lasting < 1:
			return 0
		case from < p.lead:
			return p.committed[c]
		case from < p.lead+after:
			return p.replicas(c, first[i])
		}
		return p.replicas(c, then[i])
	})
}

// free returns the work of the replicas that are needed in any case, if all others are removed now.
func (f *future) free() supply {
	return f.sum(func(i, c int) int {
		p := &f.pools[i]
		if f.cells[c].from < p.lead {
			return min(p.committed[c], p.replicas(c, 0))
		}
		return p.replicas(c, 0)
	})
}

// replicas returns the number that exists in a cell if a number is requested for deadlines.
func (p *poolFuture) replicas(c, requested int) int {
	return min(max(p.needed[c], requested, p.pool.Min), p.pool.Max)
}

// sum adds up the work of numbers of replicas, given by pool and cell.
func (f *future) sum(replicas func(i, c int) int) supply {
	s := supply{cells: f.cells, sum: make([]float64, len(f.cells))}
	total := 0.0
	for c, cell := range f.cells {
		rate := 0.0
		for i := range f.pools {
			rate += f.rate(i, c, replicas(i, c))
		}
		total += rate * (cell.to - cell.from)
		s.sum[c] = total
	}
	return s
}
