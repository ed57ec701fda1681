package plan

import (
	"fmt"
	"reflect"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/shadow"
	"github.com/tidefill/tidefill/scheduler"
)

// Validate reports what is wrong with a configuration for New or Reconfigure.
func Validate(cfg Config, order scheduler.Config, flow flowcontrol.Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if err := cfg.order(order).Validate(); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	if err := flow.Validate(); err != nil {
		return fmt.Errorf("flowcontrol: %w", err)
	}
	return nil
}

// order returns the configuration of the queues.
func (c Config) order(order scheduler.Config) scheduler.Config {
	order.AssumedRate = c.Cost.AssumedRate
	return order
}

func (p *Planner) newQueue() *scheduler.Queue { return must(scheduler.NewQueue(p.rule)) }

// must returns what was built from a configuration that Validate has found valid.
func must[T any](built T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("plan: build from a valid configuration: %v", err))
	}
	return built
}

func (p *Planner) reconfigure(now time.Time, ev Reconfigure) {
	ev.Config.Cost = p.cfg.Cost
	flowsChanged := !reflect.DeepEqual(ev.Config.Inline.Flows, p.cfg.Inline.Flows)
	p.cfg = ev.Config
	if order := p.cfg.order(ev.Scheduler); !reflect.DeepEqual(order, p.rule) {
		p.rule = order
		p.reorder()
	}
	for _, pool := range p.pools {
		pool.maxRequests = p.cfg.Inline.MaxRunning
		if flowsChanged {
			p.reorderRequests(now, pool)
		}
	}
	p.flow = ev.Flow
	for _, pool := range p.pools {
		if pool.reconfigure(now, p.flow.For(pool.name, pool.models)) {
			p.nextRequired = time.Time{} // a new controller does not know what deadlines require
		}
	}
	p.configured = ev.Pools
	p.dropEmptyPools()
	p.identify()
}

// reorder puts all jobs into new queues. Tenants and named queues share anew from now on.
func (p *Planner) reorder() {
	for _, pool := range p.pools {
		pool.starts, pool.loads, pool.places = p.newQueue(), p.newQueue(), places{}
	}
	for _, id := range p.jobIDs() {
		j := p.jobs[id]
		p.rank(j)
		for _, pool := range j.pools {
			setOffered(pool.starts, j.id, j.inStarts)
			setOffered(pool.loads, j.id, j.inLoads)
		}
	}
}

// control gives the pool a controller and its shadow.
func (p *pool) control(cfg flowcontrol.Config) {
	p.flow, p.shadow, p.controlled = must(flowcontrol.New(cfg)), must(shadow.New(cfg)), cfg
	p.prefill = prefill{cfg.Engine}
	p.stale = true
}

// reconfigure replaces the controller and the shadow, each if its own configuration differs. It
// reports whether the controller is another one.
func (p *pool) reconfigure(now time.Time, cfg flowcontrol.Config) (replaced bool) {
	same := p.controlled.Equal(cfg)
	before, shadowed := p.controlled.ForShadow()
	after, shadows := cfg.ForShadow()
	sameShadow := !shadowed && !shadows || shadowed && shadows && before.Equal(after)
	p.controlled = cfg
	if !sameShadow {
		p.shadow = must(shadow.New(cfg))
		p.rejoin(now, p.shadow.Observe)
	}
	if !same {
		old := p.flow
		p.flow, p.prefill = must(flowcontrol.New(cfg)), prefill{cfg.Engine}
		p.inherit(now, old)
		p.stale = true
		for _, r := range p.runners {
			r.lines.prefill = p.prefill
		}
		p.rejoin(now, func(now time.Time, o flowcontrol.Observation) { p.flow.Observe(now, o) })
	}
	return !same
}

// inherit gives a new controller what that before it has learned, if it is of the same policy. What
// depends on settings that have changed is not taken over.
func (p *pool) inherit(now time.Time, before flowcontrol.Controller) {
	from, learned := before.(flowcontrol.Learner)
	to, learns := p.flow.(flowcontrol.Learner)
	if !learned || !learns || before.Name() != p.flow.Name() {
		return
	}
	if state := from.Learned(now); state != nil {
		_ = to.Learn(now, state, 0) // what it refuses is learned again
	}
}

// rejoin reports the pool's runners to a new controller, and the pauses that they have asked for.
func (p *pool) rejoin(now time.Time, observe func(time.Time, flowcontrol.Observation)) {
	for _, r := range p.runners {
		observe(now, r.joined())
		if pause := r.heldUntil.Sub(now); pause > 0 {
			observe(now, &flowcontrol.Shed{Load: r.load(), RetryAfter: pause})
		}
	}
}
