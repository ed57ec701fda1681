package autoscale

import (
	"math"
	"time"
)

// SeparateConfig configures the policy separate, which runs batches on pools of their own.
type SeparateConfig struct {
	// Within is the time in which all waiting work should be done. Default: 2h.
	Within time.Duration `yaml:"within"`
}

// separate sends no batches to pools with interactive traffic. It gives the other pools the
// replicas that do the waiting work within a time.
type separate struct {
	cfg     SeparateConfig
	tracker *tracker
}

func newSeparate(cfg Config, t *tracker) Controller { return &separate{cfg.Separate, t} }

func (*separate) Name() string { return "separate" }

func (c *separate) Step(now time.Time, s State) Decision {
	c.tracker.observe(now, s)
	work := 0.0
	for _, j := range s.Jobs {
		if !j.Paused {
			work += j.Work
		}
	}
	d := c.tracker.decide(now, s, func(i int, x *trackedPool) (int, Reason) {
		if s.Pools[i].Interactive.Served {
			return forTraffic(i, x)
		}
		rate := x.replica.rate(0) * x.harvest.share * c.cfg.Within.Seconds()
		if work == 0 || rate <= 0 {
			return 0, ReasonNone
		}
		n := int(min(math.Ceil(work/rate), float64(s.Pools[i].Max)))
		work -= rate * float64(n)
		work = max(work, 0)
		return n, ReasonQueue
	}, c.tracker.removal)
	for i := range d.Pools {
		d.Pools[i].Closed = s.Pools[i].Interactive.Served
	}
	return d
}
