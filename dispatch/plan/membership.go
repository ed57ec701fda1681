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
}

// poolOf finds or makes the pool of runners that serve these models. Pools stay when their last runner leaves: jobs wait there.
func (p *Planner) poolOf(models []string) *pool {
	key := strings.Join(models, "\x00")
	i, found := slices.BinarySearchFunc(p.pools, key, func(x *pool, key string) int { return strings.Compare(x.key, key) })
	if found {
		return p.pools[i]
	}
	made := &pool{key: key, models: models, starts: again(p.newQueue), loads: again(p.newQueue), stale: true}
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
