package autoscale

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// static keeps every pool at its maximum: capacity for the peak, always paid.
type static struct{ step time.Duration }

func newStatic(cfg Config) Controller { return static{cfg.Step} }

func (static) Name() string { return "static" }

func (c static) Step(now time.Time, s State) Decision {
	d := Decision{Wake: now.Add(c.step)}
	for i := range s.Pools {
		p := &s.Pools[i]
		d.Pools = append(d.Pools, Wanted{Pool: p.ID, Replicas: p.Max, Shown: shown(p, p.Max),
			Reason: ReasonFixed})
	}
	return d
}

// interactive has what the forecast traffic needs; batches get what that leaves.
type interactive struct{ watch *watch }

func newInteractive(cfg Config) Controller { return &interactive{newWatch(cfg)} }

func (*interactive) Name() string { return "interactive" }

func (c *interactive) Step(now time.Time, s State) Decision {
	c.watch.observe(now, s)
	return c.watch.answer(now, s, forTraffic, c.watch.hold)
}

func forTraffic(_ int, x *watched) (int, Reason) {
	if x.needed == 0 {
		return 0, ReasonNone
	}
	return x.needed, ReasonInteractive
}

// QueueLengthConfig is for the law that KEDA's scalers of message queues follow: replicas by the
// number of requests that wait.
type QueueLengthConfig struct {
	// LinesPerReplica is the target: how many lines left one replica is worth. Default: 10000.
	LinesPerReplica int `yaml:"lines_per_replica"`
	// Stabilization is how long the highest number wanted stays in force, as in HPA's
	// behavior.scaleDown. Default: 5m, as there.
	Stabilization time.Duration `yaml:"stabilization"`
}

// queueLength has ceil(lines/target) replicas, or what traffic needs if that is more: the metrics
// of one ScaledObject are not added. What is wanted beyond the traffic follows HPA: ignored within
// a tenth of what there is, up at once, down to the highest of the stabilization window, as far as
// need be.
type queueLength struct {
	cfg    QueueLengthConfig
	watch  *watch
	wishes map[string]*highest
}

func newQueueLength(cfg Config) Controller {
	return &queueLength{cfg: cfg.QueueLength, watch: newWatch(cfg), wishes: map[string]*highest{}}
}

func (*queueLength) Name() string { return "queue_length" }

// tolerance is HPA's: a ratio of wanted to existing replicas this close to 1 changes nothing.
const tolerance = 0.1

func (c *queueLength) Step(now time.Time, s State) Decision {
	c.watch.observe(now, s)
	lines := 0
	for _, j := range s.Jobs {
		if !j.Paused {
			lines += j.Lines
		}
	}
	return c.watch.answer(now, s, func(i int, x *watched) (int, Reason) {
		p := &s.Pools[i]
		there := exist(p)
		n := min(int(math.Ceil(float64(lines)/float64(c.cfg.LinesPerReplica))), p.Max)
		if there > 0 && n > 0 && math.Abs(float64(n)/float64(there)-1) <= tolerance {
			n = there
		}
		if c.wishes[p.ID] == nil {
			c.wishes[p.ID] = &highest{}
		}
		n = c.wishes[p.ID].of(now, n, c.cfg.Stabilization)
		if n <= x.needed {
			return forTraffic(i, x)
		}
		return n, ReasonQueue
	}, c.hold)
}

// hold is the interactive scaler's; a pool for batches alone has only HPA's patience, which has
// been had.
func (c *queueLength) hold(p *Pool) time.Duration {
	if p.Interactive.Served {
		return c.watch.cfg.Down.Hold
	}
	return 0
}

// SeparateConfig is for a pool of its own for batches.
type SeparateConfig struct {
	// Within is how soon what waits should be done. Default: 2h.
	Within time.Duration `yaml:"within"`
}

// separate keeps batches away from pools with interactive traffic, and gives those without as many
// replicas as do the waiting work within a time.
type separate struct {
	cfg   SeparateConfig
	watch *watch
}

func newSeparate(cfg Config) Controller { return &separate{cfg.Separate, newWatch(cfg)} }

func (*separate) Name() string { return "separate" }

func (c *separate) Step(now time.Time, s State) Decision {
	c.watch.observe(now, s)
	work := 0.0
	for _, j := range s.Jobs {
		if !j.Paused {
			work += j.Work
		}
	}
	d := c.watch.answer(now, s, func(i int, x *watched) (int, Reason) {
		if s.Pools[i].Interactive.Served {
			return forTraffic(i, x)
		}
		rate := x.replica.rate(0) * x.harvest.share * c.cfg.Within.Seconds()
		if work == 0 || rate <= 0 {
			return 0, ReasonNone
		}
		n := int(min(math.Ceil(work/rate), float64(s.Pools[i].Max)))
		work -= portable.Rounded(rate * float64(n))
		work = max(work, 0)
		return n, ReasonQueue
	}, c.watch.hold)
	for i := range d.Pools {
		d.Pools[i].Closed = s.Pools[i].Interactive.Served
	}
	return d
}
