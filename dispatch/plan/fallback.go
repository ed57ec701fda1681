package plan

import (
	"slices"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A fallback is a pool that stands in for another one (RunnerUp.Instead): a server elsewhere, with
// a budget, that the operator pays for each token. It gets nothing that the other pool has room
// for:
//
//   - A request goes there if it would be refused otherwise, or if every runner of its pools has
//     refused it. It never waits there.
//   - Lines go there whose batch can't meet its deadline (Feasibility), while no pool of the batch
//     has a free slot.
//
// Flow control counts the requests of a fallback as it counts lines, so both use one budget.

// lastKey begins the keys of fallbacks, so that they come after all other pools and get only lines
// for which these have no slot. No name has the byte, which is none of UTF-8.
const lastKey = "\xff"

// spending counts what a fallback has done.
type spending struct {
	Requests, Lines            int
	PromptTokens, OutputTokens int
}

// FallbackStatus is what a fallback has done instead of another pool, since the process started.
type FallbackStatus struct {
	Instead string // the pool for which it answers
	// Requests and Lines were sent there. The tokens are those of their answers.
	Requests, Lines, PromptTokens, OutputTokens int
	// Spent is what this day (UTC) has cost, what is in flight as estimated. PerDay is the most
	// that it may cost. 0: no limit is configured, and Spent is unknown.
	Spent, PerDay float64
}

// spendingOf returns the counters of the fallback of a name.
func (t *Totals) spendingOf(name string) *spending {
	if t.spending[name] == nil {
		t.spending[name] = &spending{}
	}
	return t.spending[name]
}

// fallback returns 1 for a fallback, and 0 for another pool.
func (p *pool) fallback() int {
	if p.instead != "" {
		return 1
	}
	return 0
}

// hasFallback reports whether a pool has a fallback.
func (p *Planner) hasFallback() bool {
	n := len(p.pools)
	return n > 0 && p.pools[n-1].instead != ""
}

// carries returns the number that flow control limits: lines and, of a fallback, requests.
func (p *pool) carries() int {
	if p.instead == "" {
		return p.inFlight
	}
	return p.inFlight + p.requestsRunning
}

// carries returns the number that flow control limits: lines and, of a fallback, requests.
func (r *runner) carries() int {
	if r.pool == nil || r.pool.instead == "" {
		return r.inFlight
	}
	return r.inFlight + r.requests
}

// may reports whether the batch may use a pool now. It may use the fallback of one that it may use
// while its deadline can't be met.
func (b *batchState) may(use *pool) bool {
	if use.instead == "" {
		return b.Batch.may(use)
	}
	return b.infeasible && (b.Pools == nil || slices.Contains(b.Pools, use.instead))
}

// mayStart returns whose lines may start in the pool: in a fallback those of jobs for which no
// other pool has a free slot.
func (p *pool) mayStart(now time.Time) func(*job) bool {
	if p.instead == "" {
		return anyJob
	}
	return func(j *job) bool {
		return !slices.ContainsFunc(j.pools, func(other *pool) bool {
			return other.instead == "" && other.mostFree(now) != nil && !j.shunsAll(other)
		})
	}
}

// replaces reports whether the pool is the fallback of one that a request may use.
func (p *Planner) replaces(pool *pool, r *Request) bool {
	switch {
	case pool.instead == "" || pool.closed || !pool.serves(r.Model):
		return false
	case r.Pools != nil:
		return slices.Contains(r.Pools, pool.instead)
	default:
		return p.flow.For(pool.instead, pool.models).Shared
	}
}

// allAvoided reports whether every runner with a place for the request has failed it.
func (p *Planner) allAvoided(now time.Time, r *Request) bool {
	if len(r.Avoid) == 0 {
		return false
	}
	for _, pool := range p.pools {
		if !pool.takesRequest(r) {
			continue
		}
		for _, x := range pool.runners {
			if x.requestPlaces(now) > 0 && !slices.Contains(r.Avoid, x.id) {
				return false
			}
		}
	}
	return true
}

// standIn starts a request, which neither waits nor runs, on a fallback. It reports whether one had
// a place and the budget for it.
func (p *Planner) standIn(now time.Time, x *request) bool {
	for _, pool := range slices.Backward(p.pools) {
		if pool.instead == "" {
			return false // fallbacks come last
		}
		if p.draining || !p.replaces(pool, x.Request) {
			continue
		}
		pool.refresh(now, &p.out)
		r := pool.standInFor(now, x)
		if r == nil {
			continue
		}
		p.requests[x.ID], x.pool = x, pool
		pool.requests.Resume(x.Flow)
		output := p.weigh(x)
		x.charged = x.work
		p.occupy(now, x, r)
		pool.spending.Requests++
		pool.observe(now, &flowcontrol.Started{Load: r.load(), PromptTokens: x.PromptTokens,
			OutputTokens: int(output)})
		p.out.Admit = append(p.out.Admit, Admission{ID: x.ID, Runner: r.id,
			Waited: now.Sub(x.came), Why: Fallback, Instead: pool.instead})
		return true
	}
	return false
}

// standInFor returns the runner of a fallback that has room for a request and has not failed it;
// nil: none.
func (p *pool) standInFor(now time.Time, x *request) *runner {
	if p.carries() >= p.ceiling {
		return nil
	}
	for _, r := range p.runners {
		if r.free(now) > 0 && !slices.Contains(x.Avoid, r.id) {
			return r
		}
	}
	return nil
}

// observeRequest reports the end of a request to the flow control of a fallback.
func (p *pool) observeRequest(now time.Time, x *request, ev *RequestEnded) {
	load, prompt := x.runner.load(), ev.PromptTokens
	if prompt == 0 && ev.OutputTokens > 0 {
		prompt = x.PromptTokens // a stream need not have its usage
	}
	p.countTokens(prompt, ev.OutputTokens)
	switch ev.Outcome {
	case Shed:
		x.runner.hold(now, ev.RetryAfter)
		p.observe(now, &flowcontrol.Shed{Load: load, RetryAfter: ev.RetryAfter})
	case Unreachable, Died, Failed, Garbled, Denied, TimedOut:
		p.observe(now, &flowcontrol.Broken{Load: load})
	case Evicted:
		p.observe(now, &flowcontrol.Evicted{Load: load, Latency: ev.Latency})
	default:
		p.observe(now, &flowcontrol.Answered{Load: load, Latency: ev.Latency,
			PromptTokens: prompt, OutputTokens: ev.OutputTokens,
			CachedTokens: ev.CachedTokens, Estimated: x.PromptTokens})
	}
}

// countTokens counts the tokens of an answer, if the pool is a fallback.
func (p *pool) countTokens(prompt, output int) {
	if p.spending != nil {
		p.spending.PromptTokens += prompt
		p.spending.OutputTokens += output
	}
}

// inheritSpent gives a new fallback what the one of the same name with other models has learned: a
// change of the models is no other budget.
func (p *Planner) inheritSpent(now time.Time, made *pool) {
	for _, pool := range p.pools {
		if pool.name == made.name {
			made.inherit(now, pool.flow)
		}
	}
}

// Fallbacks returns what fallbacks have done, in the order of Pools; nil for other pools.
func (p *Planner) Fallbacks(now time.Time) []*FallbackStatus {
	all := make([]*FallbackStatus, len(p.pools))
	for i, pool := range p.pools {
		if pool.instead == "" {
			continue
		}
		s := &FallbackStatus{Instead: pool.instead, Requests: pool.spending.Requests,
			Lines: pool.spending.Lines, PromptTokens: pool.spending.PromptTokens,
			OutputTokens: pool.spending.OutputTokens}
		if spender, spends := pool.flow.(flowcontrol.Spender); spends {
			s.Spent, s.PerDay = spender.Spent(now)
		}
		all[i] = s
	}
	return all
}
