package autoscale

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// RequestRateConfig configures the policy request_rate, which follows the planner that
// ai-dynamo/dynamo#10265 describes.
type RequestRateConfig struct {
	// PerReplica is the number of requests a second that a replica serves, of batches and others
	// alike. Default: 2.5, lines of about 950 tokens and answers of 255 on a 70B model.
	PerReplica float64 `yaml:"per_replica"`
	// Margin is the share of more capacity that is requested. Default: 0.1.
	Margin float64 `yaml:"margin"`
}

// requestRate keeps as many replicas in one pool as the present traffic and the earliest deadlines
// first need together, counted in requests. Without capacity beside the traffic it closes the pool
// to batches.
type requestRate struct {
	cfg     RequestRateConfig
	tracker *tracker
}

func newRequestRate(cfg Config, t *tracker) Controller {
	return &requestRate{cfg.RequestRate, t}
}

func (*requestRate) Name() string { return "request_rate" }

func (c *requestRate) Step(now time.Time, s State) Decision {
	c.tracker.observe(now, s)
	only := slices.IndexFunc(s.Pools, func(p PoolState) bool { return p.Max > 0 })
	lines := c.lines(now, s.Jobs)
	d := c.tracker.decide(now, s, func(i int, x *trackedPool) (int, Reason) {
		if i != only {
			return forTraffic(i, x)
		}
		offered := (x.forecast.level + lines) * (1 + c.cfg.Margin)
		if n := int(min(math.Ceil(offered/c.cfg.PerReplica), math.MaxInt32)); n > x.needed {
			return n, ReasonDeadline
		}
		return forTraffic(i, x)
	}, c.tracker.removal)
	for i := range d.Pools {
		p := &s.Pools[i]
		offered := c.tracker.pools[p.Name].forecast.level * (1 + c.cfg.Margin)
		d.Pools[i].Closed = p.Interactive.Served &&
			float64(ready(p))*c.cfg.PerReplica <= offered
	}
	return d
}

// lines returns the batch lines a second by which all deadlines are met, the earliest first.
func (c *requestRate) lines(now time.Time, jobs []plan.Demand) float64 {
	dated := slices.DeleteFunc(slices.Clone(jobs), func(j plan.Demand) bool {
		return j.Paused || !j.Deadline.After(now)
	})
	slices.SortFunc(dated, func(a, b plan.Demand) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), a.Key.Compare(b.Key))
	})
	rate, due := 0.0, 0.0
	for _, j := range dated {
		due += float64(j.Lines)
		left := j.Deadline.Sub(now) - c.tracker.cfg.Deadline.Guard
		rate = max(rate, due/max(left, time.Minute).Seconds())
	}
	return rate
}

func ready(p *PoolState) int {
	n := 0
	for _, r := range p.Replicas {
		if r.Phase == Ready {
			n++
		}
	}
	return n
}
