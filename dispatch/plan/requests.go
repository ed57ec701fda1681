package plan

import (
	"hash/fnv"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan/routing"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// request is a Request that waits or is in flight.
type request struct {
	*Request
	pool       *pool
	came       time.Time
	prefix     []uint64 // as Request.Prefix, of its model
	runner     *runner  // nil: it waits
	life       uint32   // runner.life when it started
	started    time.Time
	first      time.Time // of its first token; zero: it has none yet
	work       float64   // expected that is left
	promptWork float64   // of it, until the first token
	charged    float64   // to its flow at the start
	cached     int       // tokens of its prompt that were expected in the runner's cache
	trial      uint32    // number of the trial of the runner's breaker; 0: not a trial
}

// requestCame takes in a request.
func (p *Planner) requestCame(now time.Time, r *Request) {
	if p.draining {
		p.refuse(now, r.ID, now, Draining)
		return
	}
	x := &request{Request: r, came: now, prefix: prefixOf(r)}
	pool, why := p.poolFor(now, r)
	if (pool == nil || r.Outside || p.allAvoided(now, r)) && p.standIn(now, x) {
		return
	}
	if pool == nil || r.Outside {
		p.refuse(now, r.ID, now, why)
		return
	}
	x.pool = pool
	p.await(now, x)
}

// prefixOf returns the hashes of a request's prefix and its model: engines keep what they have
// computed of a prompt by model.
func prefixOf(r *Request) []uint64 {
	of := fnv.New64a()
	_, _ = of.Write([]byte(r.Model)) // never fails
	model := of.Sum64()
	prefix := slices.Clone(r.Prefix)
	for i := range prefix {
		prefix[i] ^= model
	}
	return prefix
}

// await has a request wait in its pool, from which it may start in this step.
func (p *Planner) await(now time.Time, x *request) {
	p.requests[x.ID] = x
	x.pool.guard.came(now, x.Objective, p.cfg.Inline.Flows.Index(x.Flow.Class))
	x.pool.requests.SetMaxWaiting(p.maxWaiting())
	wait := flows.Request{ID: x.ID, Flow: x.Flow, Deadline: x.Deadline}
	for _, shed := range x.pool.requests.Add(now, wait) {
		p.shedRequest(now, shed)
	}
}

// maxWaiting returns the number of requests that may wait in a pool.
func (p *Planner) maxWaiting() int {
	n := p.cfg.Inline.Flows.MaxWaiting
	if all := p.cfg.Inline.MaxWaiting; all > 0 {
		n = min(n, all/len(p.pools))
	}
	return n
}

// shedRequest refuses a request that has waited in vain.
func (p *Planner) shedRequest(now time.Time, shed flows.Shed) {
	x := p.requests[shed.ID]
	delete(p.requests, shed.ID)
	if p.standIn(now, x) {
		return
	}
	x.pool.turnedAway(x, shed.Why)
	p.refuse(now, x.ID, x.came, Reason(shed.Why))
}

func (p *Planner) refuse(now time.Time, id uint64, came time.Time, why Reason) {
	p.out.Refuse = append(p.out.Refuse, Refusal{ID: id, Why: why, Waited: now.Sub(came),
		RetryAfter: retryAfter})
}

// retryAfter is what a refusal asks for: long enough to spare a full pool the same request, short
// enough for a place that is free soon.
const retryAfter = 2 * time.Second

// poolFor returns the pool in which a request waits: of those that it may use the one with the most
// places to spare in proportion to its places. why says why there is none.
func (p *Planner) poolFor(now time.Time, r *Request) (best *pool, why Reason) {
	why = NoRunner
	spare := 0.0
	for _, pool := range p.pools {
		if !pool.takesRequest(r) {
			continue
		}
		places := pool.requestPlaces(now)
		if places == 0 {
			if len(pool.runners) > 0 && why == NoRunner {
				why = pool.limitReason()
			}
			continue
		}
		free := float64(places-pool.requestsRunning-pool.requests.Waiting()) / float64(places)
		if best == nil || free > spare {
			best, spare = pool, free
		}
	}
	return best, why
}

// takesRequest reports whether the pool is one of those that a request may use.
func (p *pool) takesRequest(r *Request) bool {
	switch {
	case p.closed || !p.serves(r.Model):
		return false
	case r.Pools != nil:
		return slices.Contains(r.Pools, p.name)
	default:
		return !p.reserved && (p.name == "" || p.controlled.Shared)
	}
}

// requestPlaces returns the number of requests that may be in flight in the pool: those of runners
// that can be reached and take any.
func (p *pool) requestPlaces(now time.Time) (places int) {
	for _, r := range p.runners {
		places += r.requestPlaces(now)
	}
	return places
}

// fillRequests starts requests that wait while there are places.
func (p *Planner) fillRequests(now time.Time, pool *pool) {
	for _, shed := range pool.requests.Expire(now) {
		p.shedRequest(now, shed)
	}
	defer pool.yieldLines(now, &p.out)
	if pool.requests.Waiting() == 0 || p.draining {
		return
	}
	places := pool.requestPlaces(now)
	for {
		id, ok := pool.requests.Next(now, places, func(class int) int {
			return pool.guard.limit(class, places)
		})
		if !ok {
			break
		}
		x := p.requests[id]
		p.weigh(x)
		class := p.cfg.Inline.Flows.Index(x.Flow.Class)
		pace := pool.guard.paces(class) && now.Sub(x.came) < pacedFor
		r, cached, paced := pool.runnerFor(now, x, pace)
		if r == nil {
			if !paced {
				pool.makeRoom(now, &p.out)
			}
			break
		}
		p.startRequest(now, x, r, cached)
	}
	if pool.requests.Waiting() > 0 {
		pool.noteWaiting(places)
	}
}

// noteWaiting records why the requests that wait do so.
func (p *pool) noteWaiting(places int) {
	why := AtLimit
	switch {
	case places == 0:
		why = p.limitReason()
	case p.requestsRunning < places && p.guard.holds(p.requestsRunning):
		why = ObjectiveAtRisk
	case p.requestsRunning < places && p.inFlight > 0:
		why = LinesYield
	}
	p.requestReason = why
}

// runnerFor returns the runner on which a request starts, and the tokens of its prompt that are
// expected in the runner's prefix cache; nil: none has room or, if paced, those that have compute
// the prompts of others. pace says that the request must await these.
func (p *pool) runnerFor(
	now time.Time, x *request, pace bool,
) (to *runner, cached int, paced bool) {
	may := func(r *runner) bool {
		busy := pace && r.prefilling > 0 && r.prefilling+x.PromptTokens > pacedPrompts
		paced = paced || busy
		return !busy
	}
	to, cached = p.choose(now, x, func(r *runner) bool {
		return may(r) && !slices.Contains(x.Avoid, r.id)
	})
	if to == nil && len(x.Avoid) > 0 {
		to, cached = p.choose(now, x, may)
	}
	return to, cached, paced
}

// choose returns the best runner with room of those that may have a request.
func (p *pool) choose(now time.Time, x *request, may func(*runner) bool) (*runner, int) {
	p.candidates, p.candidateRunners = p.candidates[:0], p.candidateRunners[:0]
	for _, r := range p.runners {
		if r.requestRoom(now) <= 0 || !may(r) {
			continue
		}
		p.candidates = append(p.candidates, routing.Candidate{Runner: r.id, Work: r.carried,
			Requests: r.requests + r.inFlight, KVUsed: r.room.kvUsed})
		p.candidateRunners = append(p.candidateRunners, r)
	}
	at, cached := p.routes.Choose(p.candidates, routing.Request{Work: x.work,
		PromptWork: x.promptWork, PromptTokens: x.PromptTokens, Prefix: x.prefix})
	if at < 0 {
		return nil, 0
	}
	return p.candidateRunners[at], cached
}

// makeRoom evicts lines from runners whose places they hold while requests wait.
func (p *pool) makeRoom(now time.Time, out *Actions) {
	wanted := p.requests.Waiting()
	for _, r := range p.runners {
		held := min(r.requestPlaces(now)-r.requests, r.inFlight)
		if n := min(wanted, held); n > 0 {
			keep := max(0, len(r.lines.lines)-n)
			out.Evict = r.lines.evict(r.id, keep, out.Evict)
			wanted -= n
		}
	}
}

// weigh estimates the work of a request. It returns the expected output in tokens.
func (p *Planner) weigh(x *request) (output float64) {
	output = x.pool.useCase(x).expect(p.cfg.Cost.OutputTokens, x.MaxTokens)
	x.work = p.cfg.Cost.Work(float64(x.PromptTokens), output)
	x.promptWork = x.work - p.cfg.Cost.Work(0, output)
	return output
}

// startRequest starts a request on a runner, whose cache is expected to have tokens of its prompt.
func (p *Planner) startRequest(now time.Time, x *request, r *runner, cached int) {
	pool := x.pool
	x.charged = x.work
	pool.requests.Start(x.ID, x.charged)
	pool.routes.Sent(r.id, x.prefix)
	x.cached = cached
	saved := routing.Request{PromptWork: x.promptWork, PromptTokens: x.PromptTokens}.Saved(cached)
	x.work, x.promptWork = x.work-saved, x.promptWork-saved
	p.occupy(now, x, r)
	a := Admission{ID: x.ID, Runner: r.id, Waited: now.Sub(x.came), Cached: cached}
	if a.Waited > 0 {
		a.Why = pool.requestReason
	}
	p.out.Admit = append(p.out.Admit, a)
}

// occupy counts a request as in flight on a runner of its pool.
func (p *Planner) occupy(now time.Time, x *request, r *runner) {
	pool := x.pool
	x.runner, x.life, x.started, x.trial = r, r.life, now, r.breaker.start()
	pool.requestsRunning++
	r.requests++
	r.prefilling += x.prefills()
	r.carried += x.work
	r.requested.add(now, x)
}

// prefills returns the tokens of the prompt of a request that will show when it is computed.
func (x *request) prefills() int {
	if x.Streamed {
		return x.PromptTokens
	}
	return 0
}

// requestLeft removes a request whose user has gone before it started.
func (p *Planner) requestLeft(id uint64) {
	x := p.requests[id]
	if x != nil && x.runner == nil {
		x.pool.requests.Remove(id)
		delete(p.requests, id)
	}
}

func (p *Planner) requestSpoke(now time.Time, ev RequestSpoke) {
	x := p.requests[ev.ID]
	if x == nil || x.runner == nil || !x.first.IsZero() {
		return
	}
	x.first = now
	x.runner.unload(x.promptWork)
	x.work -= x.promptWork
	if x.life != x.runner.life {
		return
	}
	x.runner.prefilling -= x.prefills()
	x.runner.requested.spoke(x)
	x.pool.felt.firstToken(ev.Latency, x.pool.controlled.SLO)
}

func (p *Planner) requestsDecoded(ev RequestsDecoded) {
	if r := p.runners[ev.Runner]; r != nil && r.pool != nil {
		r.requested.decoded(ev)
		r.pool.guard.decoded(ev)
	}
}

// requestEnded ends a request in flight.
func (p *Planner) requestEnded(now time.Time, ev *RequestEnded) {
	x := p.requests[ev.ID]
	if x == nil || x.runner == nil {
		return
	}
	delete(p.requests, ev.ID)
	pool, r := x.pool, x.runner
	pool.requests.Done(now, x.Flow)
	pool.requestsRunning--
	r.requests--
	r.unload(x.work)
	if r.pool == nil && !r.busy() {
		delete(p.runners, r.id)
		p.dropTallies(r)
	}
	if x.life == r.life && r.pool != nil {
		if x.first.IsZero() {
			r.prefilling -= x.prefills()
		}
		r.requested.ended(x, ev)
		p.reportRequest(now, x, ev)
		if pool.instead != "" {
			pool.observeRequest(now, x, ev)
		}
	}
	pool.learn(now, x, ev)
	if ev.OutputTokens > 0 {
		done := p.cfg.Cost.Work(float64(x.PromptTokens), float64(ev.OutputTokens))
		pool.requests.Charge(x.Flow, done-x.charged)
	}
}

// reportRequest reports the end of a request to the breaker of its runner.
func (p *Planner) reportRequest(now time.Time, x *request, ev *RequestEnded) {
	r := x.runner
	var until time.Time
	var opened bool
	switch ev.Outcome {
	case Succeeded:
		r.answers.add(0)
		r.breaker.succeed(x.trial)
		if !r.requested.metricsUntil.After(now) {
			r.growRoom(1 / max(1, r.room.limit)) // by one while as many are answered
		}
	case Evicted, TimedOut:
		r.breaker.pass(x.trial)
	case Unreachable, Died:
		r.failed = RunnerFailure{ev.Outcome, ev.Status}
		until, opened = r.breaker.fail(now, p.cfg.Breaker, x.trial)
	case Shed:
		r.breaker.answer(x.trial)
		r.full(r.requests + r.inFlight)
		if ev.RetryAfter > 0 {
			r.pauseRequests(now.Add(min(ev.RetryAfter, longestRequestPause)))
		}
	case Failed, Garbled, Denied:
		r.answers.add(1)
		r.answers.last = RunnerFailure{ev.Outcome, ev.Status}
		until, opened = r.breaker.misanswer(now, p.cfg.Breaker, x.trial, suspicion,
			r.pool.suspected(r))
	default:
		r.breaker.answer(x.trial)
	}
	if opened {
		p.timers.set(timer{at: until, runner: r})
	}
}

// moveRequests gives the requests that wait in a pool without runners another pool, or refuses
// them.
func (p *Planner) moveRequests(now time.Time, from *pool) {
	for _, w := range from.requests.All() {
		x := p.requests[w.ID]
		delete(p.requests, w.ID)
		pool, why := p.poolFor(now, x.Request)
		if pool == nil || pool == from {
			if p.standIn(now, x) {
				continue
			}
			p.refuse(now, x.ID, x.came, why)
			continue
		}
		x.pool = pool
		p.keepDeadline(x)
		p.await(now, x)
	}
}

// serveRequests starts and refuses requests of all pools, and reports what they show.
func (p *Planner) serveRequests(now time.Time) {
	for _, pool := range p.pools {
		if len(pool.runners) == 0 || pool.closed {
			p.moveRequests(now, pool)
			continue
		}
		p.watchRequests(now, pool)
		p.fillRequests(now, pool)
	}
}

// reorderRequests puts the requests of a pool into a new queue.
func (p *Planner) reorderRequests(now time.Time, pool *pool) {
	waiting := pool.requests.All()
	pool.requests = must(flows.New(p.cfg.Inline.Flows))
	for _, x := range p.requests {
		if x.pool == pool && x.runner != nil {
			pool.requests.Resume(x.Flow)
		}
	}
	for _, w := range waiting {
		x := p.requests[w.ID]
		p.keepDeadline(x)
		p.await(now, x)
	}
}

// keepDeadline has a request that waits in another queue from now on wait no longer than before.
func (p *Planner) keepDeadline(x *request) {
	if x.Deadline.IsZero() {
		x.Deadline = x.came.Add(p.cfg.Inline.Flows.Class(x.Flow.Class).MaxWait)
	}
}

// refuseAll refuses the requests that wait.
func (p *Planner) refuseAll(now time.Time) {
	for _, pool := range p.pools {
		for _, w := range pool.requests.All() {
			x := p.requests[w.ID]
			delete(p.requests, w.ID)
			p.refuse(now, x.ID, x.came, Draining)
		}
	}
}
