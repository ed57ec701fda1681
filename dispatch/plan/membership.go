package plan

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan/routing"
	"github.com/tidefill/tidefill/scheduler/flows"
)

func (p *Planner) runnerUp(now time.Time, ev RunnerUp) {
	models := slices.Clone(ev.Models)
	slices.Sort(models)
	models = slices.Compact(models)
	r := p.runners[ev.Runner]
	switch {
	case r == nil:
		r = &runner{id: ev.Runner, draining: p.drains[ev.Runner]}
		p.runners[r.id] = r
	case r.in(ev) && slices.Equal(r.models, models):
		return
	case r.in(ev) && ev.Unlisted && p.grow(r.pool, models):
		r.models = models
		return
	case r.pool != nil:
		r.pool.remove(now, r)
	}
	if r.since.IsZero() {
		r.since = now
	}
	r.models, r.access, r.gateway, r.engine = models, ev.Access, ev.Gateway, ev.engine()
	pool := p.poolOf(now, models, ev)
	p.takeOver(now, pool, r)
	pool.add(now, r)
	p.joinPause(r)
	p.dropEmptyPools()
	p.identify()
}

// in reports whether the runner is in the pool of this name already, and is reached in this way.
func (r *runner) in(ev RunnerUp) bool {
	return r.pool != nil && r.pool.name == ev.Pool && r.access == ev.Access
}

func (p *Planner) runnerGone(now time.Time, id string) {
	r := p.runners[id]
	if r == nil || r.pool == nil {
		return
	}
	r.pool.remove(now, r)
	r.life, r.breaker, r.answers, r.since = r.life+1, breaker{}, lastAnswers{},
		time.Time{}
	r.prefilling, r.room, r.requested = 0, requestRoom{}, requested{}
	r.lines.detach()
	if !r.busy() {
		delete(p.runners, id)
		p.dropTallies(r)
	}
	p.dropEmptyPools()
	p.identify()
}

// maxEmptyPools limits the number of pools without a runner. Such pools are kept, with what was
// measured, in case their runners return. Runners whose model names change all the time must not
// add pools forever.
const maxEmptyPools = 8

// dropEmptyPools drops the empty pools that are not configured any more, and those that have been
// empty for longest. Their jobs join pools of their model that are added later.
func (p *Planner) dropEmptyPools() {
	for i, pool := range slices.Backward(p.pools) {
		if len(pool.runners) == 0 && pool.instead == "" && pool.name != "" &&
			p.configured != nil && !slices.Contains(p.configured, pool.name) {
			p.dropPool(i)
		}
	}
	for {
		empty, oldest := 0, -1
		for i, pool := range p.pools {
			if len(pool.runners) > 0 || pool.instead != "" { // what that has spent counts
				continue
			}
			empty++
			if oldest < 0 || pool.emptySince.Before(p.pools[oldest].emptySince) {
				oldest = i
			}
		}
		if empty <= maxEmptyPools {
			return
		}
		p.dropPool(oldest)
	}
}

func (p *Planner) dropPool(i int) {
	dropped := p.pools[i]
	p.pools = slices.Delete(p.pools, i, i+1)
	p.order.stale = true
	for _, j := range p.jobs { // in any order, which changes nothing
		if at := slices.Index(j.pools, dropped); at >= 0 {
			j.pools = slices.Delete(j.pools, at, at+1)
		}
	}
	for _, m := range dropped.models {
		p.dropOutputs(m)
	}
}

// dropOutputs drops the mean output of a model that no pool serves and no batch has.
func (p *Planner) dropOutputs(model string) {
	if p.outputs[model] == nil {
		return
	}
	for _, pool := range p.pools {
		if pool.serves(model) {
			return
		}
	}
	for _, j := range p.jobs {
		if j.key.Model == model {
			return
		}
	}
	delete(p.outputs, model)
}

// poolOf returns the pool of the runners of a name that serve these models, a new one if there is
// none. ev brings one of them.
func (p *Planner) poolOf(now time.Time, models []string, ev RunnerUp) *pool {
	key := poolKey(ev.Pool, models)
	if ev.Instead != "" {
		key = lastKey + key
	}
	i, found := p.findPool(key)
	if found {
		return p.pools[i]
	}
	made := &pool{key: key, name: ev.Pool, models: models, closed: p.closed[ev.Pool],
		reserved: ev.Reserved, instead: ev.Instead,
		starts: p.newQueue(), loads: p.newQueue(), harvested: p.totals.of(ev.Pool),
		requests: must(flows.New(p.cfg.Inline.Flows)), maxRequests: p.cfg.Inline.MaxRunning,
		routes: routing.New(routing.Config{BlockTokens: PrefixTokens})}
	if len(ev.Models) > 0 {
		made.first = ev.Models[0]
	}
	made.recalled = p.recalledOf(models, ev)
	made.control(p.flow.For(made.name, models))
	if made.instead != "" {
		made.spending = p.totals.spendingOf(made.name)
		p.inheritSpent(now, made)
	}
	p.pools = slices.Insert(p.pools, i, made)
	p.order.stale = true
	for _, id := range p.jobIDs() {
		if j := p.jobs[id]; slices.Contains(models, j.key.Model) && j.batch.may(made) {
			p.join(j, made)
		}
	}
	return made
}

// jobIDs returns the IDs of all jobs in order, because decisions must not depend on map order.
func (p *Planner) jobIDs() []string {
	ids := make([]string, 0, len(p.jobs))
	for id := range p.jobs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// assign adds a new job to every pool that serves its model and that its batch may use.
func (p *Planner) assign(now time.Time, j *job) {
	for _, pool := range p.pools {
		if slices.Contains(pool.models, j.key.Model) && j.batch.may(pool) {
			p.join(j, pool)
		}
	}
	p.offer(now, j)
}

// reassign moves a job to the pools that its batch may use now. Its lines in flight go on.
func (p *Planner) reassign(now time.Time, j *job) {
	j.pools = slices.DeleteFunc(j.pools, func(of *pool) bool {
		if j.batch.may(of) {
			return false
		}
		of.starts.Remove(j.id)
		of.loads.Remove(j.id)
		of.promptTokens -= j.readyTokens()
		return true
	})
	for _, pool := range p.pools {
		if slices.Contains(pool.models, j.key.Model) && j.batch.may(pool) &&
			!slices.Contains(j.pools, pool) {
			p.join(j, pool)
		}
	}
	p.offer(now, j)
}

func (p *Planner) join(j *job, pool *pool) {
	j.pools = append(j.pools, pool)
	pool.promptTokens += j.readyTokens()
	pool.put(j)
	setOffered(pool.starts, j.id, j.inStarts)
	setOffered(pool.loads, j.id, j.inLoads)
}
