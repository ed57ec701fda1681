package plan

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// BatchStatus is how a batch stands with the planner.
type BatchStatus struct {
	InFlight, Retrying, Ready int
	// Waiting names why nothing more of the batch is started now; Flowing while lines start as
	// slots free up.
	Waiting Reason
}

// Status tells how a batch stands; false if the planner doesn't know it.
func (p *Planner) Status(now time.Time, batch string) (BatchStatus, bool) {
	b := p.batches[batch]
	if b == nil {
		return BatchStatus{}, false
	}
	s := BatchStatus{InFlight: b.inFlight}
	for _, j := range b.jobs {
		s.Retrying += j.retrying
		s.Ready += j.ready.len()
	}
	s.Waiting = p.waiting(now, b, s)
	return s, true
}

func (p *Planner) waiting(now time.Time, b *batchState, s BatchStatus) Reason {
	switch {
	case p.draining:
		return Draining
	case p.hold != Flowing:
		return p.hold
	case b.Paused:
		return Paused
	case !b.mayStart():
		return BatchLimit
	}
	why := Flowing
	for _, j := range b.jobs {
		if j.lines == 0 {
			continue
		}
		reason := p.jobWaiting(now, j, s)
		if reason == Flowing {
			return Flowing
		}
		if why == Flowing {
			why = reason
		}
	}
	return why
}

func (p *Planner) jobWaiting(now time.Time, j *job, s BatchStatus) Reason {
	served := slices.ContainsFunc(j.pools, func(x *pool) bool { return len(x.runners) > 0 })
	if !served {
		return NoRunner
	}
	if j.ready.len() == 0 {
		switch {
		case j.inFlight > 0:
			return Flowing
		case j.retrying > 0:
			return WaitingToRetry
		default:
			return Loading
		}
	}
	for _, pool := range j.pools {
		if pool.roomiest(now) != nil {
			return Flowing
		}
	}
	if s.InFlight > 0 {
		return Flowing // it has its share of the slots
	}
	return j.pools[0].noRoom(now)
}

// PoolStatus is how a pool stands.
type PoolStatus struct {
	Models   []string
	Runners  []RunnerStatus
	InFlight int
	Limit    int
	Jobs     int
	Why      Reason
	// Granted is why flow control allows no more.
	Granted flowcontrol.Reason
}

// RunnerStatus is how a runner stands.
type RunnerStatus struct {
	ID              string
	InFlight, Limit int
	Open            bool // its breaker: nothing is sent but trials
	// Prefilling is how many prompt tokens of lines wait there to be computed, as far as is known;
	// Prompt how many may when another line starts.
	Prefilling, Prompt int
	// Granted is why flow control allows no more.
	Granted flowcontrol.Reason
}

// Pools tells how all pools stand.
func (p *Planner) Pools() []PoolStatus {
	all := make([]PoolStatus, 0, len(p.pools))
	for _, pool := range p.pools {
		s := PoolStatus{
			Models: pool.models, InFlight: pool.inFlight, Limit: min(pool.limit, pool.ceiling),
			Jobs: pool.starts.Len(), Why: pool.why, Granted: pool.reason,
		}
		for _, r := range pool.runners {
			s.Runners = append(s.Runners, RunnerStatus{
				ID: r.id, InFlight: r.inFlight, Limit: r.granted.Lines, Open: r.breaker.open,
				Prefilling: r.underWay.prefilling, Prompt: r.granted.Prompt,
				Granted: r.granted.Reason,
			})
		}
		all = append(all, s)
	}
	return all
}

// Terms are what the pools' controllers explain their allowances by, in the order of Pools; nil for
// one that doesn't explain.
func (p *Planner) Terms(now time.Time) [][]flowcontrol.Term {
	all := make([][]flowcontrol.Term, len(p.pools))
	for i, pool := range p.pools {
		if e, explains := pool.flow.(flowcontrol.Explainer); explains {
			all[i] = e.Explain(now)
		}
	}
	return all
}

// Learned returns the mean output tokens of a model's answers so far; 0: none seen.
func (p *Planner) Learned(model string) float64 {
	if o := p.outputs[model]; o != nil {
		return o.mean
	}
	return 0
}
