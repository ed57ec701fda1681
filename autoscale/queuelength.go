package autoscale

import (
	"math"
	"time"
)

// QueueLengthConfig configures the policy queue_length, which follows KEDA's scalers of message
// queues: the number of replicas is proportional to the number of waiting requests.
type QueueLengthConfig struct {
	// LinesPerReplica is the number of waiting lines per replica. Default: 10000.
	LinesPerReplica int `yaml:"lines_per_replica"`
	// Stabilization is how long the highest number wanted remains in force, as in HPA's
	// behavior.scaleDown. Default: 5m, as there.
	Stabilization time.Duration `yaml:"stabilization"`
}

// queueLength wants ceil(lines/target) replicas, or what the traffic needs if that is more: KEDA
// does not add the metrics of a ScaledObject. As HPA it ignores a change within a tenth, grows at
// once, and shrinks to the highest number of the stabilization window.
type queueLength struct {
	cfg     QueueLengthConfig
	tracker *tracker
	wanted  map[string]*recentHighest // by pool
}

func newQueueLength(cfg Config, t *tracker) Controller {
	return &queueLength{cfg: cfg.QueueLength, tracker: t,
		wanted: map[string]*recentHighest{}}
}

func (*queueLength) Name() string { return "queue_length" }

// tolerance is HPA's: a ratio of wanted to existing replicas this close to 1 changes nothing.
const tolerance = 0.1

func (c *queueLength) Step(now time.Time, s State) Decision {
	c.tracker.observe(now, s)
	lines := 0
	for _, j := range s.Jobs {
		if !j.Paused {
			lines += j.Lines
		}
	}
	return c.tracker.decide(now, s, func(i int, x *trackedPool) (int, Reason) {
		p := &s.Pools[i]
		existing := active(p)
		n := min(int(math.Ceil(float64(lines)/float64(c.cfg.LinesPerReplica))), p.Max)
		if existing > 0 && n > 0 && math.Abs(float64(n)/float64(existing)-1) <= tolerance {
			n = existing
		}
		if c.wanted[p.Name] == nil {
			c.wanted[p.Name] = &recentHighest{}
		}
		n = c.wanted[p.Name].add(now, n, c.cfg.Stabilization)
		if n <= x.needed {
			return forTraffic(i, x)
		}
		return n, ReasonQueue
	}, c.removal)
}

// removal is that of the interactive autoscaler. A pool for batches alone has only the
// stabilization of HPA, which Step has applied.
func (c *queueLength) removal(p *PoolState) removal {
	r := c.tracker.removal(p)
	if !p.Interactive.Served {
		r.hold = 0
	}
	return r
}
