package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// Planner decides which line starts where. One goroutine owns it.
type Planner struct {
	cfg    Config
	rule   scheduler.Config
	flow   flowcontrol.Config
	random *rand.Rand // for the jitter of retry pauses

	pools   []*pool                // ordered by key
	order   fillOrder              // of pools
	runners map[string]*runner     // by ID, also removed ones that still have lines in flight
	batches map[string]*batchState // by ID
	// requests holds those that wait or are in flight, by ID
	requests map[uint64]*request
	jobs     map[string]*job        // by ID
	limited  int                    // jobs with a limit by Room
	outputs  map[string]*outputMean // by model
	tallies  map[string]*modelTally // by model
	timers   timers

	recalled []*recalled // what was learned of pools before
	totals   *Totals
	drains   marks // runners that drain
	closed   marks // names of closed pools

	configured []string // names of pools; nil: all are configured

	starts       uint64    // number of starts so far
	nextRequired time.Time // when to report next the number of lines that deadlines require
	hold         Reason    // from the last Hold
	failedLoads  int       // jobs whose last claim failed
	draining     bool      // since Drain
	out          Actions   // of the present Step
}

// Deps holds the configurations of the parts of a Planner, and its source of randomness.
type Deps struct {
	Scheduler scheduler.Config
	Flow      flowcontrol.Config
	Random    *rand.Rand
	// Totals are counters to continue. Nil: they begin at 0.
	Totals *Totals
}

// New builds a planner. It returns an error if the configuration names an unknown policy.
func New(cfg Config, deps Deps) (*Planner, error) {
	if err := Validate(cfg, deps.Scheduler, deps.Flow); err != nil {
		return nil, err
	}
	p := &Planner{
		cfg:      cfg,
		rule:     cfg.order(deps.Scheduler),
		flow:     deps.Flow,
		random:   deps.Random,
		runners:  map[string]*runner{},
		batches:  map[string]*batchState{},
		requests: map[uint64]*request{},
		jobs:     map[string]*job{},
		outputs:  map[string]*outputMean{},
		tallies:  map[string]*modelTally{},
		totals:   cmp.Or(deps.Totals, NewTotals()),
	}
	return p, nil
}

// Step processes an event and returns what to do about it. It neither blocks nor reads a clock.
func (p *Planner) Step(now time.Time, ev Event) Actions {
	p.out = Actions{Start: p.out.Start[:0], Claim: p.out.Claim[:0], Evict: p.out.Evict[:0],
		Admit: p.out.Admit[:0], Refuse: p.out.Refuse[:0]}
	began := p.starts
	switch ev := ev.(type) {
	case RunnerUp:
		p.runnerUp(now, ev)
	case RunnerGone:
		p.runnerGone(now, ev.Runner)
	case RunnerStop:
		p.runnerStop(now, ev)
	case RunnerDrain:
		p.runnerDrain(ev)
	case PoolClosed:
		p.poolClosed(ev)
	case BatchPut:
		p.batchPut(now, ev.Batch)
	case BatchGone:
		p.batchGone(ev.Batch)
	case Feasibility:
		p.setFeasibility(now, ev)
	case Loaded:
		p.loaded(now, ev)
	case Unloaded:
		p.unloaded(now, ev)
	case MoreChunks:
		if j := p.job(ev.Key); j != nil {
			j.more, j.claimAfter = true, time.Time{}
			p.offer(now, j)
		}
	case *Finished:
		p.out.Verdict = p.finished(now, ev)
	case *FirstToken:
		p.firstToken(now, ev)
	case TokenGaps:
		p.tokenGaps(now, ev)
	case Reading:
		p.reading(now, ev)
	case Recall:
		p.recall(now, ev)
	case Forget:
		p.forget(now, ev)
	case Reconfigure:
		p.reconfigure(now, ev)
	case RequestCame:
		p.requestCame(now, ev.Request)
	case RequestLeft:
		p.requestLeft(ev.ID)
	case RequestSpoke:
		p.requestSpoke(now, ev)
	case RequestsDecoded:
		p.requestsDecoded(ev)
	case *RequestEnded:
		p.requestEnded(now, ev)
	case Hold:
		p.hold = ev.Reason
	case Room:
		p.setRoom(now, ev)
	case Drain:
		p.draining = true
		p.refuseAll(now)
	case Tick:
	default:
		panic(fmt.Sprintf("plan: unknown event %T", ev))
	}
	p.fire(now)
	p.reportRequired(now)
	if p.cfg.Inline.Enabled {
		p.serveRequests(now)
	}
	if !p.draining {
		// Get the allowances even while starts are held, because they may evict lines, and before
		// any line starts, because a line may wait for a runner of another pool.
		for _, pool := range p.pools {
			pool.refresh(now, &p.out)
		}
	}
	pools := p.inFillOrder()
	p.fillFirstChoices(now, pools)
	for _, pool := range pools {
		p.fill(now, pool)
	}
	// A line that finds room in another pool needs nobody's place.
	for _, pool := range pools {
		p.preempt(now, pool, began)
	}
	p.out.Wake = p.wake()
	return p.out
}

// job returns a job by its key, or nil if its batch is gone. Batches have few models.
func (p *Planner) job(key JobKey) *job {
	if b := p.batches[key.Batch]; b != nil {
		for _, j := range b.jobs {
			if j.key == key {
				return j
			}
		}
	}
	return nil
}

// fire executes the timers that are due.
func (p *Planner) fire(now time.Time) {
	for {
		t, ok := p.timers.due(now)
		if !ok {
			return
		}
		switch {
		case t.runner != nil: // fill starts a trial line on the runner
			t.runner.endStop(now)
			t.runner.endPause(now)
			p.promptsComputed(now, t.runner)
		case t.job.gone: // nothing is left to do
		case t.retry:
			t.job.retrying--
			p.requeue(t.job, t.line, false)
			p.offer(now, t.job)
		default:
			p.offer(now, t.job)
		}
	}
}

// fill starts lines while there are free slots, and claims chunks for later ones.
func (p *Planner) fill(now time.Time, pool *pool) {
	if p.draining {
		pool.waitReason = Draining
		return
	}
	if p.hold != Flowing {
		pool.waitReason = p.hold
		return
	}
	slots := 0
	r := pool.mostFree(now)
	for r != nil {
		slots++
		j, l, on, ok := p.next(now, pool, r, pool.mayStart(now))
		if !ok {
			break
		}
		p.start(now, pool, on, j, l)
		r = pool.mostFree(now)
	}
	slots += p.try(now, pool)
	p.claimAhead(now, pool, slots)
	failed := p.loadFailure(pool)
	switch {
	case r == nil:
		pool.waitReason = pool.limitReason()
	case p.wantsRoom(pool) != Flowing:
		pool.waitReason = p.wantsRoom(pool)
	case failed != Flowing:
		pool.waitReason = failed
	case pool.expected > 0 || pool.loads.Offered() > 0:
		pool.waitReason = Loading
	default:
		pool.waitReason = NothingReady
	}
}

// start starts a line of a job on a runner.
func (p *Planner) start(now time.Time, pool *pool, r *runner, j *job, l line) {
	p.countReady(j, -int(l.prompt))
	output := p.expectOutput(j, float64(l.max))
	work := p.cfg.Cost.Work(float64(l.prompt), output)
	tally := j.tally.on(r)
	l.work = float32(work)
	p.countStart(now, pool, r, j, work)
	s := Start{
		Key: j.key, Chunk: int(l.chunk), Slot: int(l.slot), Runner: r.id, Attempt: int(l.tries) + 1,
		Stream: r.lines.streamed < pool.streams, number: p.starts,
		line: l, cached: int32(j.cached.of(int(l.prompt), r)), job: j, runner: r, life: r.life,
		trial: r.breaker.start(), tally: tally,
		started: *tally,
	}
	if a := j.absent(r); a != nil {
		p.pauseTrials(now, a)
	}
	r.lines.add(now, &s)
	p.out.Start = append(p.out.Start, s)
	o := &pool.observed.started
	*o = flowcontrol.Started{Load: r.load(), PromptTokens: int(l.prompt),
		CachedTokens: int(s.cached), Streamed: s.Stream,
		LongOutput: int(p.longOutput(j, output, float64(l.max)))}
	if j.measured() {
		o.OutputTokens = int(output)
	}
	pool.observe(now, o)
	p.promptsComputed(now, r)
	pool.refresh(now, &p.out)
	if !j.batch.begun {
		p.begin(j.batch)
	}
	if !j.startable() {
		p.offer(now, j)
	}
	if limit := j.batch.MaxConcurrency; limit > 0 && j.batch.inFlight == limit {
		p.offerAll(now, j.batch)
	}
}

// countStart counts a started line of the given work as in flight.
func (p *Planner) countStart(now time.Time, pool *pool, r *runner, j *job, work float64) {
	if pool.inFlight == 0 {
		pool.rate.resume(now)
		pool.recalled = nil
	}
	j.inFlight++
	j.batch.inFlight++
	r.inFlight++
	r.carried += work
	pool.inFlight++
	pool.starts.Charge(j.id, work)
	pool.loads.Charge(j.id, work)
	p.starts++
	if pool.spending != nil {
		pool.spending.Lines++
	}
}

// begin records that the first line of a batch has started. Its StartBy is met and no longer makes
// it urgent.
func (p *Planner) begin(b *batchState) {
	b.begun = true
	if b.StartBy.IsZero() {
		return
	}
	for _, j := range b.jobs {
		p.rank(j)
	}
}

// offer updates in which queues of its pools the job is offered: in starts if it has a line to
// start, in loads if it has a line to start or a chunk to claim.
func (p *Planner) offer(now time.Time, j *job) {
	starts := !j.gone && j.startable()
	loads := starts || !j.gone && j.claimable(now) &&
		j.readyLines()+j.expecting < j.enough(p.cfg.LookAhead)
	for _, pool := range j.pools {
		if starts != j.inStarts {
			setOffered(pool.starts, j.id, starts)
		}
		if loads != j.inLoads {
			setOffered(pool.loads, j.id, loads)
		}
	}
	j.inStarts, j.inLoads = starts, loads
	if starts && !j.offered {
		j.offered = true
		p.probe(now, j)
	}
}

// setOffered parks a job in a queue, or unparks it.
func setOffered(q *scheduler.Queue, id string, offered bool) {
	if offered {
		q.Unpark(id)
	} else {
		q.Park(id)
	}
}

func (p *Planner) offerAll(now time.Time, b *batchState) {
	for _, j := range b.jobs {
		p.offer(now, j)
	}
}

// rank puts the job at its present place in the queues of its pools.
func (p *Planner) rank(j *job) {
	j.ranked = j.work
	for _, pool := range j.pools {
		pool.put(j)
	}
}

func (p *Planner) batchPut(now time.Time, b Batch) {
	switch state := p.batches[b.ID]; {
	case state != nil:
		p.updateBatch(now, state, b)
	case len(b.Models) > 0:
		p.addBatch(now, b)
	default: // a late change of a batch that is gone
	}
}

// addBatch adds a batch with a job for each of its models.
func (p *Planner) addBatch(now time.Time, b Batch) {
	state := &batchState{Batch: b}
	p.batches[b.ID] = state
	p.noteTraits(&state.Batch, 1)
	for _, m := range b.Models {
		j := p.newJob(state, m)
		p.openTally(j)
		state.jobs = append(state.jobs, j)
		p.jobs[j.id] = j
		p.assign(now, j)
	}
}

// newJob returns the job of a model of a batch, with what is known of its answers.
func (p *Planner) newJob(state *batchState, m ModelLines) *job {
	j := &job{key: JobKey{Batch: state.ID, Model: m.Model}, id: state.ID + "/" + m.Model,
		batch: state, lines: m.Lines, more: m.Lines > 0}
	j.setMeans(m)
	p.recallAnswers(j)
	j.work = p.workLeft(j)
	j.ranked = j.work
	return j
}

// updateBatch changes the properties of a batch. b.Models corrects the work left of the models that
// it lists; the models of a batch stay the same.
func (p *Planner) updateBatch(now time.Time, state *batchState, b Batch) {
	changed := b.Models
	b.Models = state.Models
	moved := !slices.Equal(b.Pools, state.Pools) || b.Pools == nil != (state.Pools == nil)
	p.noteTraits(&state.Batch, -1)
	state.Batch = b
	p.noteTraits(&state.Batch, 1)
	for _, j := range state.jobs {
		if i := slices.IndexFunc(changed, func(m ModelLines) bool {
			return m.Model == j.key.Model
		}); i >= 0 {
			j.lines = changed[i].Lines + j.loaded()
			j.setMeans(changed[i])
			j.work = p.workLeft(j)
		}
		if moved {
			p.reassign(now, j)
		}
		p.rank(j)
		p.offer(now, j)
	}
}

// setFeasibility records whether a batch can meet its deadline, which changes its rank, and
// whether it may use fallbacks.
func (p *Planner) setFeasibility(now time.Time, ev Feasibility) {
	if b := p.batches[ev.Batch]; b != nil && b.infeasible != ev.Infeasible {
		b.infeasible = ev.Infeasible
		for _, j := range b.jobs {
			if p.hasFallback() {
				p.reassign(now, j)
			}
			p.rank(j)
		}
	}
}

// setMeans computes the mean prompt and the mean token limit of the lines left.
func (j *job) setMeans(m ModelLines) {
	if m.Lines > 0 {
		j.promptMean = float64(m.PromptTokens) / float64(m.Lines)
		j.limitMean = float64(m.MaxTokens) / float64(m.Lines)
	}
}

// workLeft returns the expected work of the lines left.
func (p *Planner) workLeft(j *job) float64 {
	return float64(max(0, j.lines)) * p.cfg.Cost.Work(j.promptMean, p.expectOutput(j, j.limitMean))
}

func (p *Planner) batchGone(id string) {
	state := p.batches[id]
	if state == nil {
		return
	}
	delete(p.batches, id)
	p.noteTraits(&state.Batch, -1)
	for _, j := range state.jobs {
		p.countReady(j, -j.readyTokens())
		j.ready, j.aside = lineQueue{}, nil
		j.gone = true
		p.limit(j, Room{})
		p.noteLoad(j, Flowing)
		for _, pool := range j.pools {
			pool.starts.Remove(j.id)
			pool.loads.Remove(j.id)
		}
		j.dropClaims()
		p.closeTally(j)
		delete(p.jobs, j.id)
		p.dropOutputs(j.key.Model)
	}
}

// wake returns when the next step is due if nothing happens. A job that becomes urgent needs no
// step: while there are free slots, every line that can start has started.
func (p *Planner) wake() time.Time {
	var next time.Time
	use := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	use(p.timers.next())
	if p.draining {
		return next
	}
	for _, pool := range p.pools {
		use(pool.until)
		if p.cfg.Inline.Enabled && len(pool.runners) > 0 {
			use(pool.watchAt)
			use(pool.requests.Wake())
		}
	}
	return next
}
