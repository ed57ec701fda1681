package flowcontrol

import "time"

// fixed carries a set number of lines per runner and per pool, whatever happens. It is for those
// who know their engines.
type fixed struct {
	name string
	cfg  FixedConfig
	roster
}

func newFixed(cfg FixedConfig) *fixed {
	return &fixed{name: "fixed", cfg: cfg, roster: roster{perPool: cfg.PerPool}}
}

// Unlimited is how many lines the policy unlimited starts on a runner: many times what an engine
// runs at once, so that the rest waits there, and few enough for an engine that queues without end
// to stay alive.
const Unlimited = 4096

// newSame is fixed under the name of a policy that has nothing to configure: none and unlimited.
func newSame(name string, perRunner int) *fixed {
	return &fixed{name: name, cfg: FixedConfig{PerRunner: perRunner}}
}

func (f *fixed) Name() string { return f.name }

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
