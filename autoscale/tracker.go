package autoscale

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// tracker holds what every policy knows of the pools: the traffic forecast, the times of starts,
// and the measured harvest.
type tracker struct {
	cfg      Config
	pools    map[string]*trackedPool
	recalled map[string]recalled // of pools that were not observed yet
}

// trackedPool is the history of a pool, and its values as of the last step.
type trackedPool struct {
	observed   time.Time
	forecast   forecast
	starts     coldStarts
	harvest    harvest
	stabilizer stabilizer
	infeasible []string // jobs of the pool's group reported as infeasible at the last step

	replica replica
	lead    time.Duration // expected time of a start
	giveUp  []string
	rate    float64 // interactive requests per second until a replica requested now is ready
	needed  int     // replicas for that rate
	unknown bool    // the rate or the capacity of a replica is unknown
}

func newTracker(cfg Config) *tracker {
	return &tracker{cfg: cfg, pools: map[string]*trackedPool{}, recalled: map[string]recalled{}}
}

// observe updates the pools from a state.
func (w *tracker) observe(now time.Time, s State) {
	left := backlogOf(s.Jobs)
	for i := range s.Pools {
		p := &s.Pools[i]
		x := w.pool(now, p)
		x.observed = now
		x.replica = newReplica(p, &w.cfg.Harvest, w.cfg.Forecast.Burst)
		x.giveUp = x.starts.observe(now, p.Replicas)
		x.lead = x.starts.expected()
		x.rate, x.needed = 0, 0
		if p.Interactive.Served {
			x.forecast.observe(now, p.Interactive.Rate)
			x.rate = x.forecast.highest(now, now.Add(x.lead+w.cfg.Forecast.Ahead)) *
				(1 + x.forecast.band())
			x.needed = x.replica.serve(x.rate)
			x.unknown = x.replica.capacity <= 0 || !x.forecast.known()
			if x.unknown {
				x.needed = active(p) // unknown traffic is no reason to remove replicas
			}
		}
		x.harvest.observe(now, x.replica, x.forecast.level, left)
	}
}

// backlog is the work left of jobs that are not paused, in milliseconds.
type backlog struct {
	work    float64
	waiting float64 // of lines that are not in flight
}

func backlogOf(jobs []plan.Demand) (left backlog) {
	for i := range jobs {
		if j := &jobs[i]; !j.Paused && j.Lines > 0 {
			left.work += j.Work
			left.waiting += j.Work * float64(j.Lines-j.InFlight) / float64(j.Lines)
		}
	}
	return left
}

// pool returns the history of a pool, which begins with what was recalled of it.
func (w *tracker) pool(now time.Time, p *PoolState) *trackedPool {
	if x := w.pools[p.Name]; x != nil {
		return x
	}
	x := &trackedPool{
		forecast: forecast{cfg: w.cfg.Forecast}, starts: newColdStarts(w.cfg.Start, p),
		harvest: harvest{cfg: w.cfg.Harvest},
	}
	if r, ok := w.recalled[p.Name]; ok {
		x.takeOver(now, p, r.PoolLearned, r.age(now))
		delete(w.recalled, p.Name)
	}
	w.pools[p.Name] = x
	return x
}

// infeasible returns the jobs that were reported as infeasible at the last step.
func (w *tracker) infeasible(s State) map[string]bool {
	jobs := map[string]bool{}
	for i := range s.Pools {
		for _, id := range w.pools[s.Pools[i].Name].infeasible {
			jobs[id] = true
		}
	}
	return jobs
}

// setInfeasible notes the jobs that are reported as infeasible at each pool of the state, so that
// they are known however the pools are grouped next.
func (w *tracker) setInfeasible(s State, jobs []string) {
	for i := range s.Pools {
		w.pools[s.Pools[i].Name].infeasible = jobs
	}
}

// decide builds a decision from the number and the reason that want returns for each pool. It
// applies the bounds of the pool, and delays removals.
func (w *tracker) decide(
	now time.Time, s State, want func(i int, x *trackedPool) (int, Reason),
	removal func(p *PoolState) removal,
) Decision {
	d := Decision{Wake: now.Add(w.cfg.Step)}
	for i := range s.Pools {
		p, x := &s.Pools[i], w.pools[s.Pools[i].Name]
		n, reason := want(i, x)
		switch {
		case n > p.Max:
			n, reason = p.Max, ReasonMaximum
		case n < p.Min:
			n, reason = p.Min, ReasonMinimum
		}
		existing := active(p)
		stable := min(x.stabilizer.limit(now, n, existing, removal(p)), p.Max)
		if stable > n || x.unknown && n == x.needed {
			reason = ReasonHolding
		}
		rate := x.replica.rate(x.forecast.level/max(1, float64(existing))) * x.harvest.share
		d.Pools = append(d.Pools, Wanted{
			Pool: p.Name, Replicas: stable, Reported: withDraining(p, stable), Reason: reason,
			Drain: toDrain(p, stable), GiveUp: x.giveUp,
			Terms: Terms{
				Interactive: x.needed, Rate: x.rate, Seasonal: x.forecast.useSeasonal(),
				Harvest: rate, Share: x.harvest.share, ColdStart: x.lead,
			},
		})
	}
	return d
}

// removal returns how replicas of a pool are removed.
func (w *tracker) removal(p *PoolState) removal {
	r := removal{w.cfg.Down.BatchHold, w.cfg.Down.Share, w.cfg.Down.Every}
	if p.Interactive.Served {
		r.hold = w.cfg.Down.Hold
	}
	return r
}

// forTraffic wants the replicas that the forecast traffic needs.
func forTraffic(_ int, x *trackedPool) (int, Reason) {
	if x.needed == 0 {
		return 0, ReasonNone
	}
	return x.needed, ReasonInteractive
}

// serve returns the number of replicas that a rate of interactive requests needs.
func (r replica) serve(rate float64) int {
	if r.capacity <= 0 || rate <= 0 {
		return 0
	}
	return int(min(math.Ceil(rate/r.capacity-1e-9), math.MaxInt32))
}
