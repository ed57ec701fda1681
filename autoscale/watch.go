package autoscale

import (
	"math"
	"time"
)

// watch is what every law knows of its pools: the traffic to come, how long starts take, what is
// harvested.
type watch struct {
	cfg   Config
	pools map[string]*watched
}

type watched struct {
	forecast forecast
	starts   coldStarts
	harvest  harvest
	settle   settle

	// As of the last step.
	replica replica
	lead    time.Duration
	giveUp  []string
	expect  float64 // interactive requests a second until a replica asked for now is well ready
	needed  int     // replicas for them
	blind   bool    // that is not known
}

func newWatch(cfg Config) *watch { return &watch{cfg: cfg, pools: map[string]*watched{}} }

// observe takes in a state. Work that may be done now is what keeps pools busy.
func (w *watch) observe(now time.Time, s State) {
	work := 0.0
	for i := range s.Jobs {
		if !s.Jobs[i].Paused {
			work += s.Jobs[i].Work
		}
	}
	for i := range s.Pools {
		p := &s.Pools[i]
		x := w.pools[p.ID]
		if x == nil {
			x = &watched{
				forecast: forecast{cfg: w.cfg.Forecast}, starts: coldStarts{cfg: w.cfg.Start},
				harvest: harvest{cfg: w.cfg.Harvest},
			}
			w.pools[p.ID] = x
		}
		x.replica = replicaOf(p, &w.cfg.Harvest, w.cfg.Forecast.Burst)
		x.giveUp = x.starts.observe(now, p.Replicas)
		x.lead = x.starts.expect()
		x.expect, x.needed = 0, 0
		if p.Interactive.Served {
			x.forecast.observe(now, p.Interactive.Rate)
			x.expect = x.forecast.most(now, now.Add(x.lead+w.cfg.Forecast.Ahead)) * (1 + x.forecast.band())
			x.needed = x.replica.serve(x.expect)
			x.blind = x.replica.carry <= 0 || !x.forecast.known()
			if x.blind {
				x.needed = exist(p) // what is not known is no reason to let go of what serves
			}
		}
		x.harvest.observe(now, x.replica, x.forecast.level, work)
	}
}

// serve is how many replicas a rate of interactive requests needs.
func (r replica) serve(rate float64) int {
	if r.carry <= 0 || rate <= 0 {
		return 0
	}
	return int(min(math.Ceil(rate/r.carry-1e-9), math.MaxInt32))
}

// answer makes a decision of what each pool should have and why, shrinking slowly.
func (w *watch) answer(
	now time.Time, s State, want func(i int, x *watched) (int, Reason),
	hold func(p *Pool) time.Duration,
) Decision {
	d := Decision{Wake: now.Add(w.cfg.Step)}
	for i := range s.Pools {
		p, x := &s.Pools[i], w.pools[s.Pools[i].ID]
		n, reason := want(i, x)
		switch {
		case n > p.Max:
			n, reason = p.Max, ReasonMaximum
		case n < p.Min:
			n, reason = p.Min, ReasonMinimum
		}
		there := exist(p)
		settled := min(x.settle.to(now, n, there, hold(p), w.cfg.Down.Share), p.Max)
		if settled > n || x.blind && n == x.needed {
			reason = ReasonHolding
		}
		rate := x.replica.rate(x.forecast.level/max(1, float64(there))) * x.harvest.share
		d.Pools = append(d.Pools, Wanted{
			Pool: p.ID, Replicas: settled, Shown: shown(p, settled), Reason: reason, Drain: leaving(
				p, settled), GiveUp: x.giveUp,
			Terms: Terms{
				Interactive: x.needed, Rate: x.expect, Seasonal: x.forecast.useSeason(),
				Harvest: rate, Share: x.harvest.share, ColdStart: x.lead,
			},
		})
	}
	return d
}

// hold is how long fewer must do in a pool that other work than batches may need.
func (w *watch) hold(p *Pool) time.Duration {
	if p.Interactive.Served {
		return w.cfg.Down.Hold
	}
	return w.cfg.Down.BatchHold
}
