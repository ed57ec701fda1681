// Package aimd holds the flow-control policy aimd, which finds the number of lines that each runner
// carries by what the runner sheds: additive increase, multiplicative decrease.
//
// A runner's limit grows by one line for every limit's worth of answers and loses a share after a
// 429 or 503. Runners that share a bottleneck converge to equal parts of it, whatever they began
// with (Chiu and Jain, 1989). The policy does not look at latency, so it does not protect
// interactive traffic on an engine that queues without end instead of shedding: per_runner does.
package aimd

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Name is the policy's name in configurations.
const Name = "aimd"

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			c := newController(flowcontrol.OwnConfig[Config](cfg, Name))
			if c.cfg.Money.PerDay > 0 {
				return spender{c}, nil
			}
			return c, nil
		},
	})
}

// runner is what the controller has learned about a runner.
type runner struct {
	limit   int       // lines
	carried int       // lines in flight
	answers int       // since the limit last changed, while the limit was in use
	lastCut time.Time // when the limit was last cut; zero: never
}

type controller struct {
	cfg    Config
	roster flowcontrol.Roster[runner]
	budget *budget // nil: there is none
}

func newController(cfg Config) *controller {
	return &controller{cfg: cfg, roster: flowcontrol.Roster[runner]{PerPool: cfg.PerPool},
		budget: newBudget(cfg)}
}

func (*controller) Name() string { return Name }

func (c *controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	m, changed := c.roster.Observe(now, o, runner{limit: min(c.cfg.Start, c.cfg.PerRunner)})
	if m == nil {
		return changed
	}
	if c.budget != nil && c.spend(now, m, o) {
		changed = true
	}
	// A broken line is no sign of load; the breaker of dispatch counts those.
	switch o := o.(type) {
	case *flowcontrol.Answered:
		return m.State.grow(o.InFlight+1, c.cfg) || changed
	case *flowcontrol.Shed:
		return m.State.cut(now, c.cfg) || changed
	}
	return changed
}

// spend charges the budget for an observation, and reports whether it did.
func (c *controller) spend(
	now time.Time, m *flowcontrol.Member[runner], o flowcontrol.Observation,
) bool {
	if load, is := o.(interface{ Carried() flowcontrol.Load }); is {
		m.State.carried = load.Carried().InFlight
	}
	switch o := o.(type) {
	case *flowcontrol.Started:
		c.budget.started(now, o)
	case *flowcontrol.Answered:
		c.budget.answered(now, o)
	case *flowcontrol.Shed, *flowcontrol.Broken:
		c.budget.ended(0)
		if c.budget.money != nil {
			c.budget.money.ended(now, 0)
		}
	case *flowcontrol.Evicted: // what was computed has its price
		c.budget.ended(0)
		if c.budget.money != nil {
			c.budget.money.ended(now, asCharged)
		}
	default:
		return false
	}
	return true
}

// Allowance implements flowcontrol.Controller.
func (c *controller) Allowance(now time.Time) flowcontrol.Allowance {
	if c.budget == nil {
		return c.allowance(now)
	}
	most, until, why := c.budget.left(now)
	for _, m := range c.roster.Members {
		most += m.State.carried
	}
	c.roster.PerPool = most
	if c.cfg.PerPool > 0 {
		c.roster.PerPool = min(most, c.cfg.PerPool)
	}
	a := c.allowance(now)
	if most == 0 { // a limit of 0 is none
		a.Pool = 0
		for i := range a.Runners {
			a.Runners[i].Lines = 0
		}
	}
	if !until.IsZero() {
		a.Reason = why
		if a.Until.IsZero() || until.Before(a.Until) {
			a.Until = until
		}
	}
	return a
}

func (c *controller) allowance(now time.Time) flowcontrol.Allowance {
	return c.roster.Allowance(now, func(m *flowcontrol.Member[runner]) (int, flowcontrol.Reason) {
		switch r := m.State; {
		case r.limit >= c.cfg.PerRunner:
			return r.limit, flowcontrol.ReasonRunnerLimit
		case !r.lastCut.IsZero():
			return r.limit, flowcontrol.ReasonShed
		default:
			return r.limit, flowcontrol.ReasonGrowing
		}
	})
}

// grow raises the limit once it has been answered as many lines as it allows. Answers count only
// while at least half the limit was carried: a runner with little to do proves nothing about more
// (TCP validates its window likewise, RFC 7661).
func (r *runner) grow(carried int, cfg Config) (changed bool) {
	if r.limit >= cfg.PerRunner || 2*carried < r.limit {
		return false
	}
	r.answers++
	if r.answers < r.limit {
		return false
	}
	r.answers = 0
	r.limit = min(r.limit+cfg.Increase, cfg.PerRunner)
	return true
}

// cut lowers the limit, once per decreaseEvery: lines that are shed together are one sign.
func (r *runner) cut(now time.Time, cfg Config) (changed bool) {
	r.answers = 0
	if !r.lastCut.IsZero() && now.Sub(r.lastCut) < decreaseEvery {
		return false
	}
	r.lastCut = now
	r.limit = max(min(cfg.Min, r.limit), int(float64(r.limit)*cfg.Decrease))
	return true
}
