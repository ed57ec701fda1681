package flowcontrol

import "time"

// aimd finds each runner's number of lines by what it sheds: additive increase, multiplicative
// decrease. Runners that share a bottleneck converge to equal parts of it under this law, whatever
// they began with (Chiu and Jain, 1989).
type aimd struct {
	cfg AIMDConfig
	roster
}

func newAIMD(cfg AIMDConfig) *aimd {
	return &aimd{cfg: cfg, roster: roster{perPool: cfg.PerPool}}
}

func (*aimd) Name() string { return "aimd" }

func (c *aimd) Observe(now time.Time, o Observation) (changed bool) {
	switch o.Kind {
	case RunnerJoined:
		return c.join(o.Runner, min(c.cfg.Start, c.cfg.PerRunner))
	case RunnerLeft:
		return c.leave(o.Runner)
	}
	m := c.find(o.Runner)
	if m == nil {
		return false
	}
	switch o.Kind {
	case Answered:
		m.sheds = 0
		return c.grow(m, o.InFlight+1)
	case Shed:
		held := m.hold(now, o.RetryAfter)
		return c.cut(m, now) || held
	}
	return false // a broken line says nothing about load; the breaker in dispatch deals with it
}

func (c *aimd) Allowance(now time.Time) Allowance {
	return c.allowance(now, func(m *member) Reason {
		switch {
		case m.limit >= c.cfg.PerRunner:
			return ReasonRunnerLimit
		case !m.lastCut.IsZero():
			return ReasonShed
		default:
			return ReasonLearning
		}
	})
}

// grow raises the limit once it has been answered as many lines as it allows. Answers count only
// while at least half the limit was carried: a runner with little to do proves nothing about more
// (TCP validates its window likewise, RFC 7661).
func (c *aimd) grow(m *member, carried int) bool {
	if m.limit >= c.cfg.PerRunner || 2*carried < m.limit {
		return false
	}
	m.answers++
	if m.answers < m.limit {
		return false
	}
	m.answers = 0
	m.limit = min(m.limit+c.cfg.Increase, c.cfg.PerRunner)
	return true
}

// cut lowers the limit, once per DecreaseEvery: the lines of one moment are shed together, and are
// one sign, not many.
func (c *aimd) cut(m *member, now time.Time) bool {
	m.answers = 0
	if !m.lastCut.IsZero() && now.Sub(m.lastCut) < c.cfg.DecreaseEvery {
		return false
	}
	m.lastCut = now
	m.limit = max(min(c.cfg.Least, m.limit), int(float64(m.limit)*c.cfg.Decrease))
	return true
}
