package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan/routing"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/shadow"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// pool is the set of runners that serve the same models, and the jobs that they can run. starts
// orders the jobs with a line to start. loads orders the jobs with a line to start or a chunk to
// claim, and decides whose lines are read next. So a job whose lines are not loaded does not delay
// one whose lines are.
type pool struct {
	key        string    // its name and its models, joined
	name       string    // as configured; empty: it has none
	first      string    // model that its first runner lists first
	id         string    // in metrics and pages; no other pool has it
	models     []string  // sorted
	runners    []*runner // by ID
	emptySince time.Time // when the last runner was removed
	starts     *scheduler.Queue
	loads      *scheduler.Queue
	flow       flowcontrol.Controller
	controlled flowcontrol.Config // of flow and shadow
	shadow     *shadow.Shadow     // nil: there is none
	observed   observed
	gateway    gatewayCounts
	outcomes   outcomes
	prefill    prefill
	recalled   *recalled  // what it may take over before its first line starts; nil: nothing
	takenOver  *TakenOver // what it took over; nil: nothing was known of it

	reserved bool      // for batches that name it
	instead  string    // name of the pool whose fallback it is; empty: of none
	spending *spending // of a fallback
	closed   bool      // by PoolClosed
	inFlight int       // of its runners
	limit    int       // sum of the lines granted to its runners that do not drain
	ceiling  int       // lines granted to the pool
	streams  int       // lines to stream per runner, as requested by flow control
	reason   flowcontrol.Reason
	until    time.Time // when to get the allowance again
	stale    bool      // the allowance may have changed

	promptTokens   int // of the ready lines of its jobs
	expected       int // estimated lines of claims without an answer
	expectedTokens int // of their prompts
	rate           rate
	harvested      *float64 // work of answered lines
	// doneBy holds, by job ID, when jobs must be done for those due later; absent: their deadline
	doneBy     map[string]time.Time
	waitReason Reason // what limited the last fill

	// Interactive requests that pass through:
	requests        *flows.Queue // those that wait
	requestsRunning int
	requestReason   Reason    // why those that wait do so
	maxRequests     int       // in flight on a runner
	waitingSince    time.Time // requests; zero: none waits
	guard           guard
	cases           map[useCaseKey]*useCase
	felt            felt
	watchAt         time.Time // when to report next what they show
	routes          *routing.Table
	// of the present choice of a runner
	candidates       []routing.Candidate
	candidateRunners []*runner

	places places // of its jobs, for display
}

func (p *pool) serves(model string) bool {
	_, found := slices.BinarySearch(p.models, model)
	return found
}

// put adds a job, or ranks it again.
func (p *pool) put(j *job) {
	queued := j.queued(p.rate.perSecond())
	queued.DoneBy = p.doneBy[j.id]
	p.starts.Put(queued)
	p.loads.Put(queued)
}

// observe passes an observation to the controller and its shadow.
func (p *pool) observe(now time.Time, o flowcontrol.Observation) {
	if p.flow.Observe(now, o) {
		p.stale = true
	}
	if p.shadow != nil {
		p.shadow.Observe(now, o)
	}
}

// observed holds an observation of each type that lines and readings cause, so that reporting one
// allocates nothing: controllers keep none.
type observed struct {
	started    flowcontrol.Started
	answered   flowcontrol.Answered
	shed       flowcontrol.Shed
	broken     flowcontrol.Broken
	evicted    flowcontrol.Evicted
	firstToken flowcontrol.FirstToken
	tokenGaps  flowcontrol.TokenGaps
	read       flowcontrol.Read
}

// read reports a reading of a runner, or of the pool's gateway if runner is empty.
func (p *pool) read(now time.Time, runner string, r *flowcontrol.Reading) {
	p.observed.read = flowcontrol.Read{Runner: runner, Reading: r}
	p.observe(now, &p.observed.read)
}

// refresh gets the controller's allowance if it may have changed. It appends the lines to evict to
// out, and reports a change there.
func (p *pool) refresh(now time.Time, out *Actions) {
	if !p.stale && (p.until.IsZero() || p.until.After(now)) {
		return
	}
	limit, ceiling, reason := p.limit, p.ceiling, p.reason
	a := p.flow.Allowance(now)
	p.stale, p.limit, p.ceiling, p.streams, p.reason, p.until = false, 0, a.Pool, a.Streams,
		a.Reason, a.Until
	granted := a.Runners // by ID, as p.runners
	for _, r := range p.runners {
		for len(granted) > 0 && granted[0].Runner < r.id {
			granted = granted[1:]
		}
		r.granted = flowcontrol.RunnerAllowance{}
		if len(granted) > 0 && granted[0].Runner == r.id {
			r.granted = granted[0]
		}
		if !r.draining {
			p.limit += r.granted.Lines
		}
		if r.granted.Evict {
			out.Evict = r.lines.evict(r.id, r.granted.Lines, out.Evict)
		}
	}
	if p.limit != limit || p.ceiling != ceiling || p.reason != reason {
		out.Changed = true
	}
}

// mostFree returns the runner with the most free slots, the first by ID among equals; nil if none
// has any. It scans, because pools have tens of runners and every change of an allowance would
// change a heap. A runner with more lines than its limit takes no slots from the others. Failing
// runners only get trials.
func (p *pool) mostFree(now time.Time) *runner {
	if p.closed || p.carries() >= p.ceiling || p.inFlight >= p.linesBeside() {
		return nil
	}
	var best *runner
	most := 0
	for _, r := range p.runners {
		if free := r.free(now); free > most && !r.failing() {
			best, most = r, free
		}
	}
	return best
}

// limitReason returns why mostFree returns nil.
func (p *pool) limitReason() Reason {
	if len(p.runners) == 0 {
		return NoRunner
	}
	if p.closed {
		return Closed
	}
	if stop := p.stopped(); stop != Flowing {
		return stop
	}
	down := RunnersDown
	for _, r := range p.runners {
		if !r.breaker.open {
			if p.guard.bound > 0 && p.inFlight >= p.linesBeside() {
				return ObjectiveAtRisk
			}
			if p.reason != "" {
				return Reason(p.reason)
			}
			return AtLimit
		}
		if r.failing() {
			down = RunnersFailing
		}
	}
	return down
}

// stopped returns why no runner that can be reached takes lines, as the first of them
// says; Flowing: one takes them, or none can be reached.
func (p *pool) stopped() (why Reason) {
	for _, r := range p.runners {
		switch {
		case r.breaker.open:
		case r.draining:
			why = cmp.Or(why, Draining)
		case !r.pausedUntil.IsZero():
			why = cmp.Or(why, Reason(flowcontrol.ReasonRetryAfter))
		case r.stop == Flowing:
			return Flowing
		default:
			why = cmp.Or(why, r.stop)
		}
	}
	return why
}

func (p *pool) add(now time.Time, r *runner) {
	i, _ := slices.BinarySearchFunc(p.runners, r.id, func(x *runner, id string) int {
		return cmp.Compare(x.id, id)
	})
	p.runners = slices.Insert(p.runners, i, r)
	r.pool, r.lines.prefill, r.harvested = p, p.prefill, p.harvested
	p.inFlight += r.inFlight
	p.observe(now, r.joined())
	p.stale = true
}

func (p *pool) remove(now time.Time, r *runner) {
	i := slices.Index(p.runners, r)
	p.runners = slices.Delete(p.runners, i, i+1)
	p.emptySince = now
	p.routes.Forget(r.id)
	r.pool, r.granted = nil, flowcontrol.RunnerAllowance{}
	r.heldUntil, r.pausedUntil = time.Time{}, time.Time{}
	p.inFlight -= r.inFlight
	p.observe(now, &flowcontrol.RunnerLeft{Runner: r.id})
	p.stale = true
}
