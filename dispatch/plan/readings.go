package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func (p *Planner) firstToken(now time.Time, ev *FirstToken) {
	s := &ev.Start
	r := s.runner
	if s.life != r.life || r.pool == nil {
		return
	}
	r.lines.firstToken(now, s.number)
	s.job.cached.computedOn(r)
	o := &r.pool.observed.firstToken
	*o = flowcontrol.FirstToken{Load: r.load(), Latency: ev.Latency,
		PromptTokens: int(s.line.prompt), CachedTokens: int(s.cached)}
	r.pool.observe(now, o)
}

func (p *Planner) tokenGaps(now time.Time, ev TokenGaps) {
	if r := p.runners[ev.Runner]; r != nil && r.pool != nil && ev.Gaps > 0 {
		r.lines.tick(now, ev.Gaps, ev.Time)
		o := &r.pool.observed.tokenGaps
		*o = flowcontrol.TokenGaps{Load: r.load(), Gaps: ev.Gaps, Time: ev.Time}
		r.pool.observe(now, o)
	}
}

// promptsComputed reports to flow control which prompts were computed by now, as far as metrics
// show it, as a first token of the youngest of these lines. It sets a timer for the next.
func (p *Planner) promptsComputed(now time.Time, r *runner) {
	if r.pool == nil {
		return
	}
	if l := r.lines.settle(now); l != nil {
		if !l.detached {
			l.job.cached.computedOn(r)
		}
		o := &r.pool.observed.firstToken
		*o = flowcontrol.FirstToken{Load: r.load(), PromptTokens: int(l.prompt),
			CachedTokens: int(l.prompt - l.uncached)}
		r.pool.observe(now, o)
	}
	if u := &r.lines; u.next.After(now) && (!u.timer.After(now) || u.next.Before(u.timer)) {
		u.timer = u.next
		p.timers.set(timer{at: u.next, runner: r})
	}
}

// reading passes a reading to the pool of its runner, or to all pools of its model.
func (p *Planner) reading(now time.Time, ev Reading) {
	if ev.Runner != "" {
		if r := p.runners[ev.Runner]; r != nil && r.pool != nil {
			r.pool.read(now, r.id, ev.Reading)
			if ev.Source == flowcontrol.Metrics {
				r.lines.read(now, ev.Reading)
				r.readRoom(ev.Reading)
				r.requested.metricsUntil = now.Add(metricsHold)
				p.promptsComputed(now, r)
			}
		}
		return
	}
	for _, pool := range p.pools {
		if (ev.Model != "" && !pool.serves(ev.Model)) || !pool.isBehindGateway(ev.Pool) {
			continue
		}
		r := ev.Reading
		if r.Source == flowcontrol.Gateway {
			r = pool.gateway.add(gatewayModel{ev.Pool, ev.Model}, r)
		}
		if r != nil {
			r = r.Against(pool.controlled.SLO)
			pool.outcomes.read(now, r, pool.inFlight)
			pool.read(now, "", r)
		}
	}
}

// Objectives returns the objectives of the first pool of a model, or of all if it is empty, whose
// users a gateway shows.
func (p *Planner) Objectives(model string) flowcontrol.SLO {
	for _, pool := range p.pools {
		if (model == "" || pool.serves(model)) && pool.isBehindGateway("") {
			return pool.controlled.SLO
		}
	}
	return flowcontrol.SLO{}
}

// isBehindGateway reports whether the gateway of the pools of a name is in front of this one;
// empty: that of all pools.
func (p *pool) isBehindGateway(name string) bool {
	return p.name == "" || p.controlled.Shared && (name == "" || name == p.name)
}
