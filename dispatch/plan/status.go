package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/shadow"
)

// BatchStatus is the state of a batch.
type BatchStatus struct {
	InFlight, Retrying, Ready int
	// Waiting is why no more lines of the batch start. Flowing: lines start as slots become free.
	Waiting Reason
	// Pools are those that the batch may use, if Waiting is NoRunner; nil: any.
	Pools []string
	// Model is the model that has no runner, if Waiting is NoRunner.
	Model string
	// Behind is the batch of the same tenant with most lines in flight, if Waiting is Queued.
	// Empty: the capacity is used by other tenants.
	Behind string
	// StartsIn is when the first line is expected to start, if Waiting is Queued. 0: unknown.
	StartsIn time.Duration
	// Failing is a runner that answers with errors, one of FailingRunners of the Runners of the
	// model, if Waiting is RunnersFailing.
	Failing                 RunnerStatus
	FailingRunners, Runners int
	// Unranked is why the ordering policy can't rank a job of the batch, which then goes last. Nil:
	// it can.
	Unranked error
}

// Status returns the state of a batch, and false if the planner does not know it.
func (p *Planner) Status(now time.Time, batch string) (BatchStatus, bool) {
	b := p.batches[batch]
	if b == nil {
		return BatchStatus{}, false
	}
	s := BatchStatus{InFlight: b.inFlight}
	for _, j := range b.jobs {
		s.Retrying += j.retrying
		s.Ready += j.readyLines()
		if len(j.pools) > 0 && s.Unranked == nil {
			s.Unranked = j.pools[0].starts.Fault(j.id)
		}
	}
	why, of := p.waiting(now, b, s)
	s.Waiting = why
	switch why {
	case NoRunner:
		s.Model, s.Pools = of.key.Model, b.Pools
	case Queued:
		s.Behind, s.StartsIn = p.place(now, of)
	case RunnersFailing:
		if of != nil {
			s.Failing, s.FailingRunners, s.Runners = of.failing()
		}
	default: // the reason says it all
	}
	return s, true
}

// waiting returns why no more lines of the batch start, and the job whose reason that is, if it is
// one of a job.
func (p *Planner) waiting(now time.Time, b *batchState, s BatchStatus) (why Reason, of *job) {
	switch {
	case p.draining:
		return Draining, nil
	case p.hold != Flowing:
		return p.hold, nil
	case b.Paused:
		return Paused, nil
	case !b.mayStart():
		return BatchLimit, nil
	}
	for _, j := range b.jobs {
		if j.lines == 0 {
			continue
		}
		reason := p.jobWaiting(now, j, s)
		if reason == Flowing {
			return Flowing, nil
		}
		if why == Flowing {
			why, of = reason, j
		}
	}
	return why, of
}

func (p *Planner) jobWaiting(now time.Time, j *job, s BatchStatus) Reason {
	if b := &j.batch.Batch; b.Pools != nil && len(b.Pools) == 0 {
		return b.Nowhere
	}
	served := slices.ContainsFunc(j.pools, func(x *pool) bool { return len(x.runners) > 0 })
	if !served {
		return cmp.Or(j.batch.Nowhere, NoRunner)
	}
	if j.answeredBadly() {
		return RunnersFailing
	}
	if j.room.Stops() {
		return j.room.Reason
	}
	// Lines in flight of its pools are those of other batches, if it has none itself.
	queued := slices.ContainsFunc(j.pools, func(x *pool) bool { return x.inFlight > 0 })
	if j.readyLines() == 0 {
		switch {
		case j.inFlight > 0:
			return Flowing
		case j.retrying > 0:
			return WaitingToRetry
		case queued:
			return Queued // lines are read ahead for batches whose turn comes before
		case !slices.ContainsFunc(j.pools, (*pool).claims):
			return j.mainPool().limitReason()
		default:
			return Loading
		}
	}
	for _, pool := range j.pools {
		if pool.mostFree(now) != nil {
			return Flowing
		}
	}
	if s.InFlight > 0 {
		return Flowing // the batch has its share of the slots
	}
	limit := j.mainPool().limitReason()
	if queued && limit != RunnersDown {
		return Queued
	}
	return limit
}

// mainPool returns the pool that says why no line of the job starts, which has at least one pool:
// the first that is open, has a runner and is no fallback, or else the first.
func (j *job) mainPool() *pool {
	for _, pool := range j.pools {
		if !pool.closed && len(pool.runners) > 0 && pool.instead == "" {
			return pool
		}
	}
	return j.pools[0]
}

// PoolStatus is the state of a pool.
type PoolStatus struct {
	// ID identifies the pool in metrics and pages: its name or, if it has none, its models. No
	// other pool has it.
	ID string
	// Name is as in RunnerUp.
	Name     string
	Models   []string
	Runners  []RunnerStatus
	InFlight int
	Limit    int
	Jobs     int
	Reason   Reason
	// Policy is the name of the pool's flow control.
	Policy string
	// Granted is why flow control allows no more lines.
	Granted flowcontrol.Reason
	// Warnings are the controller's. Planner.Pools leaves them out, because it is called often.
	Warnings []flowcontrol.Warning
	// TakenOver is what was taken over of what was learned before; nil: nothing was known.
	TakenOver *TakenOver
	// Requests are the interactive requests that pass through, which Planner.Pools leaves out. Nil:
	// none do.
	Requests *RequestsStatus
	// Fallback is what the pool has done instead of another one, which Planner.Pools leaves out.
	// Nil: it is no fallback.
	Fallback *FallbackStatus
	// Shadow is what the pool's shadow would allow, which Planner.Pools leaves out too. Nil: there
	// is none.
	Shadow *shadow.Allowance
}

// RunnerStatus is the state of a runner.
type RunnerStatus struct {
	ID              string
	InFlight, Limit int
	Open            bool // the breaker is open; only trials are sent
	// Failed is the last line that it did not answer or, while it is Failing, its last bad answer.
	Failed RunnerFailure
	// Failing says that it is open because its answers are bad. Bad of its last Judged answers
	// were; both are 0 if none was.
	Failing     bool
	Bad, Judged int
	// Since is when it opened, and Trial when the next line may be sent to try it.
	Since, Trial time.Time
	Draining     bool // it gets no new lines
	// Prefilling is the number of prompt tokens of lines that wait to be computed, as far as is
	// known. Prompt is the number that may wait when another line starts.
	Prefilling, Prompt int
	// Evict says that lines beyond the Limit are being evicted.
	Evict bool
	// Granted is why flow control allows no more lines, or why the runner takes none.
	Granted flowcontrol.Reason
}

// Limited returns why the runner gets no more lines: Granted where the limit that it explains is
// reached. ReasonNone: the runner has room.
func (s *RunnerStatus) Limited() flowcontrol.Reason {
	if s.InFlight < s.Limit && s.Prefilling < s.Prompt {
		return flowcontrol.ReasonNone
	}
	return s.Granted
}

// RunnerFailure is the end of a line that a runner did not answer well. Status is that of the
// runner's or a gateway's answer; 0: there was none.
type RunnerFailure struct {
	Outcome Outcome
	Status  int
}

// Pools returns the state of all pools.
func (p *Planner) Pools() []PoolStatus {
	all := make([]PoolStatus, 0, len(p.pools))
	for _, pool := range p.pools {
		s := PoolStatus{
			ID: pool.id, Name: pool.name, Models: pool.models,
			InFlight: pool.inFlight, Limit: min(pool.limit, pool.ceiling),
			Jobs: pool.starts.Len(), Reason: pool.waitReason, Policy: pool.flow.Name(),
			Granted: pool.reason, TakenOver: pool.takenOver,
		}
		for _, r := range pool.runners {
			s.Runners = append(s.Runners, r.status())
		}
		all = append(all, s)
	}
	return all
}

// Terms returns how the controllers of the pools explain their allowances, in the order of Pools.
// Nil: the controller does not explain.
func (p *Planner) Terms(now time.Time) [][]flowcontrol.Term {
	all := make([][]flowcontrol.Term, len(p.pools))
	for i, pool := range p.pools {
		if e, explains := pool.flow.(flowcontrol.Explainer); explains {
			all[i] = e.Explain(now)
		}
	}
	return all
}

// Warnings returns what the controllers of the pools warn of, in the order of Pools.
func (p *Planner) Warnings(now time.Time) [][]flowcontrol.Warning {
	all := make([][]flowcontrol.Warning, len(p.pools))
	for i, pool := range p.pools {
		if w, warns := pool.flow.(flowcontrol.Warner); warns {
			all[i] = w.Warnings(now)
		}
	}
	return all
}

// Shadows returns what the shadows of the pools would allow, in the order of Pools. Nil: there is
// none.
func (p *Planner) Shadows(now time.Time) []*shadow.Allowance {
	all := make([]*shadow.Allowance, len(p.pools))
	for i, pool := range p.pools {
		if a, shadowed := pool.shadow.Allowance(now); shadowed {
			all[i] = &a
		}
	}
	return all
}

// MeanOutput returns the mean output tokens of a model's answers so far. 0: no answer.
func (p *Planner) MeanOutput(model string) float64 {
	if o := p.outputs[model]; o != nil {
		return o.mean
	}
	return 0
}
