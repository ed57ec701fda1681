package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func (p *Planner) runnerUp(now time.Time, ev RunnerUp) {
	models := slices.Clone(ev.Models)
	slices.Sort(models)
	models = slices.Compact(models)
	r := p.runners[ev.Runner]
	switch {
	case r == nil:
		r = &runner{id: ev.Runner}
		p.runners[r.id] = r
	case r.pool != nil && slices.Equal(r.models, models):
		return
	case r.pool != nil:
		r.pool.remove(now, r)
	}
	r.models = models
	p.poolOf(models).add(now, r)
	p.forgetPools()
}

func (p *Planner) runnerGone(now time.Time, id string) {
	r := p.runners[id]
	if r == nil || r.pool == nil {
		return
	}
	r.pool.remove(now, r)
	r.life, r.breaker = r.life+1, breaker{}
	r.underWay.disown()
	if r.inFlight == 0 {
		delete(p.runners, id)
	}
	p.forgetPools()
}

// mostEmptyPools is how many pools are kept that have lost their last runner, with what was learned
// there: runners come back. Those whose names of models change all the time must not leave ever
// more behind.
const mostEmptyPools = 8

// forgetPools drops the pools that have been empty for longest. Jobs that wait there join those of
// their model that are made later.
func (p *Planner) forgetPools() {
	for {
		empty, oldest := 0, -1
		for i, pool := range p.pools {
			if len(pool.runners) > 0 {
				continue
			}
			empty++
			if oldest < 0 || pool.emptied.Before(p.pools[oldest].emptied) {
				oldest = i
			}
		}
		if empty <= mostEmptyPools {
			return
		}
		p.dropPool(oldest)
	}
}

func (p *Planner) dropPool(i int) {
	dropped := p.pools[i]
	p.pools = slices.Delete(p.pools, i, i+1)
	for _, j := range p.byID { // in any order: each loses the same
		if at := slices.Index(j.pools, dropped); at >= 0 {
			j.pools = slices.Delete(j.pools, at, at+1)
		}
	}
	for _, m := range dropped.models {
		p.forgetOutputs(m)
	}
}

// forgetOutputs drops what was learned of a model that nobody serves and no batch needs.
func (p *Planner) forgetOutputs(model string) {
	if p.outputs[model] == nil {
		return
	}
	for _, pool := range p.pools {
		if pool.serves(model) {
			return
		}
	}
	for _, j := range p.byID {
		if j.key.Model == model {
			return
		}
	}
	delete(p.outputs, model)
}

// poolOf finds or makes the pool of runners that serve these models. Pools stay when their last
// runner leaves, while they are few: jobs wait there.
func (p *Planner) poolOf(models []string) *pool {
	key := strings.Join(models, "\x00")
	i, found := slices.BinarySearchFunc(p.pools, key, func(x *pool, key string) int {
		return strings.Compare(x.key, key)
	})
	if found {
		return p.pools[i]
	}
	made := &pool{key: key, models: models, starts: again(p.newQueue), loads: again(p.newQueue),
		stale: true}
	made.flow = again(func() (flowcontrol.Controller, error) { return p.newFlow(models) })
	p.pools = slices.Insert(p.pools, i, made)
	for _, id := range p.jobIDs() {
		if j := p.byID[id]; slices.Contains(models, j.key.Model) {
			p.join(j, made)
		}
	}
	return made
}

// again builds what could be built before.
func again[T any](build func() (T, error)) T {
	built, err := build()
	if err != nil {
		panic(fmt.Sprintf("plan: what could be built can't be built again: %v", err))
	}
	return built
}

// jobIDs lists all jobs in a fixed order, since a decision must not follow map order.
func (p *Planner) jobIDs() []string {
	ids := make([]string, 0, len(p.byID))
	for id := range p.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// assign puts a new job into every pool that serves its model.
func (p *Planner) assign(now time.Time, j *job) {
	for _, pool := range p.pools {
		if slices.Contains(pool.models, j.key.Model) {
			p.join(j, pool)
		}
	}
	p.offer(now, j)
}

func (p *Planner) join(j *job, pool *pool) {
	j.pools = append(j.pools, pool)
	pool.promptTokens += j.ready.promptTokens()
	pool.put(j)
	offer(pool.starts, j.id, j.inStarts)
	offer(pool.loads, j.id, j.inLoads)
}
