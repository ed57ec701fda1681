package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// Planner decides which line starts where. One goroutine owns it.
type Planner struct {
	cfg      Config
	newQueue func() (*scheduler.Queue, error)
	newFlow  func() (flowcontrol.Controller, error)
	random   *rand.Rand // jitter of retry pauses

	pools   []*pool // by key
	runners map[string]*runner
	batches map[string]*batchState
	byID    map[string]*job
	outputs map[string]*outputMean // by model
	timers  timers

	hold     Reason
	draining bool
	out      Actions
}

// Deps is what a planner is built from.
type Deps struct {
	Scheduler scheduler.Config
	Flow      flowcontrol.Config
	Random    *rand.Rand
}

// New builds a planner; it fails on a configuration that names unknown policies.
func New(cfg Config, deps Deps) (*Planner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	p := &Planner{
		cfg:      cfg,
		newQueue: func() (*scheduler.Queue, error) { return scheduler.NewQueue(deps.Scheduler) },
		newFlow:  func() (flowcontrol.Controller, error) { return flowcontrol.New(deps.Flow) },
		random:   deps.Random,
		runners:  map[string]*runner{},
		batches:  map[string]*batchState{},
		byID:     map[string]*job{},
		outputs:  map[string]*outputMean{},
	}
	// Built once for their errors, so that pools can be built later without any.
	if _, err := p.newQueue(); err != nil {
		return nil, fmt.Errorf("scheduler: %w", err)
	}
	if _, err := p.newFlow(); err != nil {
		return nil, fmt.Errorf("flowcontrol: %w", err)
	}
	return p, nil
}

// Step feeds one event to the planner and returns what to do about it. It neither blocks nor reads a clock.
func (p *Planner) Step(now time.Time, ev Event) Actions {
	p.out = Actions{Start: p.out.Start[:0], Claim: p.out.Claim[:0]}
	switch ev := ev.(type) {
	case RunnerUp:
		p.runnerUp(now, ev)
	case RunnerGone:
		p.runnerGone(now, ev.Runner)
	case BatchPut:
		p.batchPut(now, ev.Batch)
	case BatchGone:
		p.batchGone(ev.Batch)
	case Loaded:
		p.loaded(now, ev)
	case MoreChunks:
		if j := p.job(ev.Key); j != nil {
			j.more, j.claimAfter = true, time.Time{}
			p.offer(now, j)
		}
	case *Finished:
		p.out.Verdict = p.finished(now, ev)
	case Hold:
		p.hold = ev.Reason
	case Drain:
		p.draining = true
	case Tick:
	default:
		panic(fmt.Sprintf("plan: unknown event %T", ev))
	}
	p.fire(now)
	for _, pool := range p.pools {
		p.fill(now, pool)
	}
	p.out.Wake = p.wake()
	return p.out
}

// job finds a job by its key; nil if its batch is gone. Batches have few models.
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

// fire makes possible what the time has made possible.
func (p *Planner) fire(now time.Time) {
	for {
		t, ok := p.timers.due(now)
		if !ok {
			return
		}
		switch {
		case t.runner != nil: // its room has changed; fill will see
		case t.job.gone:
		case t.retry:
			t.job.retrying--
			p.giveBack(t.job, t.line)
			p.offer(now, t.job)
		default:
			p.offer(now, t.job)
		}
	}
}

// fill starts lines while there is room, and asks for chunks so that there will be lines for the room to come.
func (p *Planner) fill(now time.Time, pool *pool) {
	if p.draining || p.hold != Flowing {
		pool.why = p.hold
		if p.draining {
			pool.why = Draining
		}
		return
	}
	pool.refresh(now)
	slots := 0
	r := pool.roomiest(now)
	for r != nil {
		slots++
		id, ok := pool.starts.Next(now)
		if !ok {
			break
		}
		p.start(now, pool, r, p.byID[id])
		r = pool.roomiest(now)
	}
	p.stock(now, pool, slots)
	switch {
	case r == nil:
		pool.why = pool.noRoom(now)
	case pool.expected > 0 || pool.loads.Offered() > 0:
		pool.why = Loading
	default:
		pool.why = NothingReady
	}
}

// stock claims for the job whose turn it is before its lines run out. Once the lines that are ready or expected weigh enough, only
// a job that has none may claim, once for each slot that was free: so an urgent newcomer overtakes, and what is held in memory
// grows no faster than lines start.
func (p *Planner) stock(now time.Time, pool *pool, slots int) {
	for pool.limit > 0 && pool.expected < 2*p.lookAhead(pool) {
		id, ok := pool.loads.Next(now)
		if !ok {
			return
		}
		j := p.byID[id]
		have := j.ready.len() + j.expecting
		if !j.claimable(now) || have >= j.enough(p.lookAhead(pool)) {
			return
		}
		if pool.promptTokens+pool.expectedTokens >= p.cfg.LookAheadTokens {
			if have > 0 || slots == 0 {
				return
			}
			slots--
		}
		p.claim(now, pool, j)
	}
}

// lookAhead is how many lines should be ready: enough for everything under way to end at once.
func (p *Planner) lookAhead(pool *pool) int { return max(p.cfg.LookAhead, pool.inFlight) }

// claim asks for a chunk of the job. How many lines it will bring is a guess until it is loaded.
func (p *Planner) claim(now time.Time, pool *pool, j *job) {
	expecting := max(1, min(j.lines-j.ready.len()-j.inFlight-j.retrying-j.expecting, p.cfg.LookAhead/2))
	c := pendingClaim{pool: pool, lines: expecting, tokens: int(float64(expecting) * j.promptMean)}
	j.claims = append(j.claims, c)
	j.expecting += c.lines
	pool.expected += c.lines
	pool.expectedTokens += c.tokens
	p.out.Claim = append(p.out.Claim, Claim{Key: j.key})
	p.offer(now, j)
}

func (p *Planner) start(now time.Time, pool *pool, r *runner, j *job) {
	l := j.ready.pop()
	p.countReady(j, -int(l.prompt))
	work := p.cfg.Cost.work(float64(l.prompt), p.outputs[j.key.Model].expect(p.cfg.Cost.OutputTokens, int(l.max)))
	l.work = float32(work)
	if pool.inFlight == 0 {
		pool.rate.resume(now)
	}
	j.inFlight++
	j.batch.inFlight++
	r.inFlight++
	pool.inFlight++
	pool.starts.Charge(j.id, work)
	pool.loads.Charge(j.id, work)
	pool.observe(now, flowcontrol.Observation{Kind: flowcontrol.Started, Runner: r.id, InFlight: r.inFlight, PromptTokens: int(l.prompt)})
	pool.refresh(now)
	p.out.Start = append(p.out.Start, Start{
		Key: j.key, Chunk: int(l.chunk), Slot: int(l.slot), Runner: r.id, Attempt: int(l.tries) + 1,
		line: l, job: j, runner: r, life: r.life, trial: r.breaker.start(),
	})
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

// begin notes that the first line of a batch is under way: the promise of when to start is kept and makes it urgent no more.
func (p *Planner) begin(b *batchState) {
	b.begun = true
	if b.StartBy.IsZero() {
		return
	}
	for _, j := range b.jobs {
		p.rank(j)
	}
}

func (p *Planner) finished(now time.Time, f *Finished) Verdict {
	s := &f.Start
	j, r, l := s.job, s.runner, s.line
	j.inFlight--
	j.batch.inFlight--
	r.inFlight--
	switch {
	case r.pool != nil:
		r.pool.inFlight--
	case r.inFlight == 0:
		delete(p.runners, r.id)
	}
	if s.life == r.life && r.pool != nil {
		p.heed(now, f, r)
	}
	if limit := j.batch.MaxConcurrency; limit > 0 && j.batch.inFlight == limit-1 {
		p.offerAll(now, j.batch)
	}
	if j.gone {
		return Return
	}
	judged := judge(p.cfg.Retry, &j.batch.Batch, l, f.Outcome, f.Status, f.RetryAfter)
	if !judged.again {
		p.settle(now, j, l, f)
		p.offer(now, j)
		return Record
	}
	switch {
	case judged.chargedTry:
		l.tries++
	case judged.chargedDeath:
		l.deaths++
	case judged.pause > 0:
		l.waits++
	}
	if judged.pause == 0 {
		p.giveBack(j, l)
		p.offer(now, j)
		return Again
	}
	j.retrying++
	p.timers.set(timer{at: now.Add(p.jitter(judged.pause)), job: j, line: l, retry: true})
	return Again
}

// heed tells breaker and flow control how a line ended.
func (p *Planner) heed(now time.Time, f *Finished, r *runner) {
	o := flowcontrol.Observation{
		Runner: r.id, InFlight: r.inFlight, Latency: f.Latency, RetryAfter: f.RetryAfter,
		PromptTokens: f.InputTokens, OutputTokens: f.OutputTokens,
	}
	trial := f.Start.trial
	switch f.Outcome {
	case Recalled:
		r.breaker.pass(trial)
		o.Kind = flowcontrol.Recalled
	case TimedOut:
		r.breaker.pass(trial)
		o.Kind = flowcontrol.Broken
	case Unreachable, Died:
		if until, opened := r.breaker.fail(now, p.cfg.Breaker, trial); opened {
			p.timers.set(timer{at: until, runner: r})
		}
		o.Kind = flowcontrol.Broken
	case Shed:
		r.breaker.succeed()
		o.Kind = flowcontrol.Shed
	default:
		r.breaker.succeed()
		o.Kind = flowcontrol.Answered
	}
	r.pool.observe(now, o)
}

// settle takes a line that has its result out of what is left.
func (p *Planner) settle(now time.Time, j *job, l line, f *Finished) {
	j.lines--
	j.work = max(0, j.work-float64(l.work))
	if f.Outcome == Succeeded && f.OutputTokens > 0 {
		o := p.outputs[j.key.Model]
		if o == nil {
			o = &outputMean{}
			p.outputs[j.key.Model] = o
		}
		o.learn(f.OutputTokens)
	}
	if r := f.Start.runner; r.pool != nil {
		r.pool.rate.add(now, float64(l.work))
	}
	// A rank follows the work that is left; a twentieth of it is soon enough.
	if math.Abs(j.ranked-j.work) > 0.05*j.ranked {
		p.rank(j)
	}
}

func (p *Planner) jitter(pause time.Duration) time.Duration {
	return pause + time.Duration(0.2*p.random.Float64()*float64(pause))
}

// giveBack puts a line where it is started next.
func (p *Planner) giveBack(j *job, l line) {
	j.ready.pushFront(l)
	p.countReady(j, int(l.prompt))
}

// countReady keeps account of how much the ready lines of a pool weigh: they are held in memory.
func (p *Planner) countReady(j *job, promptTokens int) {
	for _, pool := range j.pools {
		pool.promptTokens += promptTokens
	}
}

// offer puts the job into the orders of its pools, or out of them, as it has something to do there or not.
func (p *Planner) offer(now time.Time, j *job) {
	starts := !j.gone && j.startable()
	loads := starts || !j.gone && j.claimable(now) && j.ready.len()+j.expecting < j.enough(p.cfg.LookAhead)
	for _, pool := range j.pools {
		if starts != j.inStarts {
			offer(pool.starts, j.id, starts)
		}
		if loads != j.inLoads {
			offer(pool.loads, j.id, loads)
		}
	}
	j.inStarts, j.inLoads = starts, loads
}

func offer(q *scheduler.Queue, id string, offered bool) {
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

func (p *Planner) rank(j *job) {
	j.ranked = j.work
	for _, pool := range j.pools {
		pool.put(j)
	}
}

func (p *Planner) batchPut(now time.Time, b Batch) {
	state := p.batches[b.ID]
	if state == nil && len(b.Models) == 0 {
		return // stale news of a batch that is gone
	}
	if state == nil {
		state = &batchState{Batch: b}
		p.batches[b.ID] = state
		for _, m := range b.Models {
			key := JobKey{Batch: b.ID, Model: m.Model}
			j := &job{key: key, id: b.ID + "/" + m.Model, batch: state, lines: m.Lines, more: m.Lines > 0}
			j.work = p.workLeft(m)
			j.ranked = j.work
			j.promptMean = float64(m.PromptTokens) / float64(max(1, m.Lines))
			state.jobs = append(state.jobs, j)
			p.byID[j.id] = j
			p.assign(now, j)
		}
		return
	}
	models := b.Models
	b.Models = state.Models
	state.Batch = b
	for _, j := range state.jobs {
		if i := slices.IndexFunc(models, func(m ModelLines) bool { return m.Model == j.key.Model }); i >= 0 {
			j.lines, j.work = models[i].Lines, p.workLeft(models[i])
		}
		p.rank(j)
		p.offer(now, j)
	}
}

func (p *Planner) workLeft(m ModelLines) float64 {
	output := p.outputs[m.Model].expect(p.cfg.Cost.OutputTokens, 0) * float64(m.Lines)
	if m.MaxTokens > 0 {
		output = min(output, float64(m.MaxTokens))
	}
	return p.cfg.Cost.work(float64(m.PromptTokens), output)
}

func (p *Planner) batchGone(id string) {
	state := p.batches[id]
	if state == nil {
		return
	}
	delete(p.batches, id)
	for _, j := range state.jobs {
		p.countReady(j, -j.ready.promptTokens())
		j.ready = lineQueue{}
		j.gone = true
		for _, pool := range j.pools {
			pool.starts.Remove(j.id)
			pool.loads.Remove(j.id)
		}
		j.forgetClaims()
		delete(p.byID, j.id)
	}
}

func (p *Planner) loaded(now time.Time, ev Loaded) {
	j := p.job(ev.Key)
	if j == nil {
		return
	}
	j.claimDone()
	for _, l := range ev.Lines {
		j.ready.push(line{chunk: int32(ev.Chunk), slot: int32(l.Slot), prompt: int32(l.PromptTokens), max: int32(l.MaxTokens)})
		p.countReady(j, l.PromptTokens)
	}
	j.more = ev.More
	j.claimAfter = time.Time{}
	if ev.Again > 0 {
		j.claimAfter = now.Add(ev.Again)
		p.timers.set(timer{at: j.claimAfter, job: j})
	}
	p.offer(now, j)
}

func (p *Planner) runnerUp(now time.Time, ev RunnerUp) {
	models := slices.Clone(ev.Models)
	slices.Sort(models)
	models = slices.Compact(models)
	r := p.runners[ev.Runner]
	switch {
	case r == nil:
		r = &runner{id: ev.Runner}
		p.runners[r.id] = r
	case r.pool != nil && slices.Equal(r.models, models):
		return
	case r.pool != nil:
		r.pool.remove(now, r)
	}
	r.models = models
	p.poolOf(models).add(now, r)
}

func (p *Planner) runnerGone(now time.Time, id string) {
	r := p.runners[id]
	if r == nil || r.pool == nil {
		return
	}
	r.pool.remove(now, r)
	r.life, r.breaker = r.life+1, breaker{}
	if r.inFlight == 0 {
		delete(p.runners, id)
	}
}

// poolOf finds or makes the pool of runners that serve these models. Pools stay when their last runner leaves: jobs wait there.
func (p *Planner) poolOf(models []string) *pool {
	key := strings.Join(models, "\x00")
	i, found := slices.BinarySearchFunc(p.pools, key, func(x *pool, key string) int { return strings.Compare(x.key, key) })
	if found {
		return p.pools[i]
	}
	made := &pool{key: key, models: models, starts: again(p.newQueue), loads: again(p.newQueue), flow: again(p.newFlow), stale: true}
	p.pools = slices.Insert(p.pools, i, made)
	for _, id := range p.jobIDs() {
		if j := p.byID[id]; slices.Contains(models, j.key.Model) {
			p.join(j, made)
		}
	}
	return made
}

// again builds what could be built before.
func again[T any](build func() (T, error)) T {
	built, err := build()
	if err != nil {
		panic(fmt.Sprintf("plan: what could be built can't be built again: %v", err))
	}
	return built
}

// jobIDs lists all jobs in a fixed order, since a decision must not follow map order.
func (p *Planner) jobIDs() []string {
	ids := make([]string, 0, len(p.byID))
	for id := range p.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// assign puts a new job into every pool that serves its model.
func (p *Planner) assign(now time.Time, j *job) {
	for _, pool := range p.pools {
		if slices.Contains(pool.models, j.key.Model) {
			p.join(j, pool)
		}
	}
	p.offer(now, j)
}

func (p *Planner) join(j *job, pool *pool) {
	j.pools = append(j.pools, pool)
	pool.promptTokens += j.ready.promptTokens()
	pool.put(j)
	offer(pool.starts, j.id, j.inStarts)
	offer(pool.loads, j.id, j.inLoads)
}

// wake is when time alone makes something possible. What moves in the order by itself (a job becomes urgent) needs no waking:
// while there is room, all that could start has started.
func (p *Planner) wake() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	sooner(p.timers.next())
	if p.draining || p.hold != Flowing {
		return next
	}
	for _, pool := range p.pools {
		sooner(pool.until)
	}
	return next
}
