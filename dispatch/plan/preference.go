package plan

import (
	"cmp"
	"slices"
	"time"
)

// fillOrder is the order in which pools get lines. A pool that batches prefer to others comes
// before these, so that they get only what has no room in it. Where batches differ, no order does
// that: then lines start on their first choices before others start anywhere.
type fillOrder struct {
	choosy      int // batches that prefer some pools to others
	preemptible int // batches whose lines may be evicted for others
	stale       bool
	pools       []*pool
	differ      bool // the order is not that of every batch
}

// noteTraits counts a batch that has come (1) or gone (-1) by what few batches have.
func (p *Planner) noteTraits(b *Batch, by int) {
	if b.choosy() {
		p.order.choosy += by
		p.order.stale = true
	}
	if b.Preemptible {
		p.order.preemptible += by
	}
}

// inFillOrder returns the pools in the order in which they get lines.
func (p *Planner) inFillOrder() []*pool {
	if p.order.choosy == 0 {
		return p.pools
	}
	if !p.order.stale {
		return p.order.pools
	}
	place := map[string]int{} // by name: the last that a batch has it at
	for _, b := range p.batches {
		for i, name := range b.Pools {
			if b.choosy() {
				place[name] = max(place[name], i)
			}
		}
	}
	p.order.stale, p.order.pools = false, slices.Clone(p.pools)
	slices.SortStableFunc(p.order.pools, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(a.fallback(), b.fallback()),
			cmp.Compare(place[a.name], place[b.name]))
	})
	p.order.differ = p.preferencesDiffer()
	return p.order.pools
}

// goesBefore reports whether a batch may take the places of another by its priority. Tenants take
// turns whatever the priorities of their batches are, so that lines of another tenant would be
// evicted as often as they start.
func goesBefore(b, other *batchState) bool {
	return b.Tenant == other.Tenant && b.Priority > other.Priority
}

// preferencesDiffer reports whether a batch prefers a pool to one that gets lines before it.
func (p *Planner) preferencesDiffer() bool {
	at := make(map[string]int, len(p.order.pools)) // the first of a name
	for i, pool := range slices.Backward(p.order.pools) {
		at[pool.name] = i
	}
	for _, b := range p.batches {
		last := 0
		for _, name := range b.Pools {
			i, known := at[name]
			if known && i < last {
				return true
			}
			last = max(last, i)
		}
	}
	return false
}

// fillFirstChoices starts lines on the pools that their batches prefer to all others with a free
// slot. What is left has no room there, and may start anywhere.
func (p *Planner) fillFirstChoices(now time.Time, pools []*pool) {
	if p.order.choosy == 0 || !p.order.differ || p.draining || p.hold != Flowing {
		return
	}
	for _, pool := range pools {
		if pool.instead != "" {
			continue // no batch names it
		}
		for r := pool.mostFree(now); r != nil; r = pool.mostFree(now) {
			j, l, on, ok := p.next(now, pool, r, func(j *job) bool {
				return j.firstChoice(now, pool)
			})
			if !ok {
				break
			}
			p.start(now, pool, on, j, l)
		}
	}
}

// firstChoice reports whether the batch prefers no other pool with a free slot to this one.
func (j *job) firstChoice(now time.Time, use *pool) bool {
	order := j.batch.Pools
	at := slices.Index(order, use.name)
	return !slices.ContainsFunc(j.pools, func(other *pool) bool {
		before := slices.Index(order, other.name)
		return before >= 0 && before < at && other.mostFree(now) != nil
	})
}

// preempt evicts lines of preemptible batches from a pool without a free slot, one for each line
// that may start instead of them: of the job that is next, if it goes before theirs. Lines that
// started after the first began ones, in this step, stay: their requests would be sent in vain. An
// evicted line is charged no attempt.
func (p *Planner) preempt(now time.Time, pool *pool, began uint64) {
	if p.order.preemptible == 0 || p.draining || p.hold != Flowing || pool.closed ||
		pool.instead != "" ||
		pool.inFlight > pool.ceiling || pool.mostFree(now) != nil {
		return
	}
	id, offered := pool.starts.Next(now)
	if !offered {
		return
	}
	j := p.jobs[id]
	urgent := pool.starts.Urgent(id)
	room := j.readyLines() // lines of it that can start
	if limit := j.batch.MaxConcurrency; limit > 0 {
		room = min(room, limit-j.batch.inFlight)
	}
	for _, of := range j.pools {
		for _, r := range of.runners {
			room -= r.lines.evicted
		}
	}
	for _, r := range pool.runners {
		if r.breaker.open || r.draining || r.granted.Lines <= 0 || j.shuns(now, r) {
			continue
		}
		// Beyond its limit, more than one line would have to go for one to come.
		for room > 0 && r.inFlight-r.lines.evicted == r.granted.Lines {
			victim := r.lines.lastOf(began, func(of *job) bool {
				return of.batch != j.batch && of.batch.Preemptible &&
					(goesBefore(j.batch, of.batch) || urgent && !pool.starts.Urgent(of.id))
			})
			if victim < 0 {
				break
			}
			p.out.Evict = append(p.out.Evict, r.lines.evictAt(victim, r.id))
			room--
		}
	}
}
