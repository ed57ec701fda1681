package flowcontrol

import "time"

// fixed carries a set number of lines per runner and per pool, whatever happens. It is for those who know their engines.
type fixed struct {
	cfg FixedConfig
	roster
}

func newFixed(cfg FixedConfig) *fixed {
	return &fixed{cfg: cfg, roster: roster{perPool: cfg.PerPool}}
}

func (*fixed) Name() string { return "fixed" }

func (f *fixed) Observe(now time.Time, o Observation) (changed bool) {
	switch o.Kind {
	case RunnerJoined:
		return f.join(o.Runner, f.cfg.PerRunner)
	case RunnerLeft:
		return f.leave(o.Runner)
	case Answered:
		if m := f.find(o.Runner); m != nil {
			m.sheds = 0
		}
	case Shed:
		m := f.find(o.Runner)
		return m != nil && m.hold(now, o.RetryAfter)
	}
	return false
}

func (f *fixed) Allowance(now time.Time) Allowance {
	return f.allowance(now, func(*member) Reason { return ReasonRunnerLimit })
}
