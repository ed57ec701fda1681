package flowcontrol

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// Reasons of the policy probe.
const (
	ReasonTokenTime Reason = "token_time" // iterations take as long as they may
	// the rest of the engine's sequences is kept for interactive requests
	ReasonSlots Reason = "slots"
	ReasonKV    Reason = "kv"    // the rest of the KV cache is
	ReasonBrake Reason = "brake" // interactive requests suffer
	ReasonAging Reason = "aging" // nothing has been seen of the runner for a while
	ReasonBlind Reason = "blind" // for a long while
	ReasonDark  Reason = "dark"  // lines break there
)

// probe keeps the engines' iterations as long as interactive requests can bear, and no longer.
// Batch lines are the probe: the gaps between their tokens are iterations. See docs/policies.md.
//
//   - Each runner's prompts are paced so that its mean iteration takes theta·TPOT: iterations below that earn time, prompts spend it.
//   - Each runner's lines follow the same target, more slowly; the law, fitted to what is seen, makes them step when the load does.
//   - Of the pool, theta and the prompt tokens outstanding follow the shares of interactive requests that were late.
//   - Caps keep KV and sequences for interactive requests; doubt shrinks, sheds cut, a brake recalls.
type probe struct {
	cfg    ProbeConfig
	slo    SLO
	engine Engine
	shared bool
	Roster[*probed]

	theta      theta
	prompt     level
	ttft, tpot lateness
	gatewayAt  time.Time // Sampled of its last reading
	lateFirst  time.Time // when first tokens were last late, more than allowed
	mix        mixture
	fit        refit

	lines   float64 // that a runner may have, by feedback
	pressed float64 // that a runner would have to have, by deadlines

	strained time.Time // since when iterations are too long in all the pool; zero: they are not

	// of the requests that run in the pool, or of its time that prompts of ours take, if that is
	// more
	ownShare spread
	answered float64
	wasted   float64 // tokens, as answered; both fade over an hour

	ticked  time.Time
	granted []RunnerAllowance // the last allowance's Runners
}

const tick = time.Second

func newProbe(cfg Config) *probe {
	own := OwnConfig[ProbeConfig](cfg, "headroom")
	p := &probe{
		cfg: own, slo: cfg.SLO, engine: cfg.Engine, shared: cfg.Shared,
		Roster: Roster[*probed]{PerPool: own.PerPool},
		lines:  float64(own.Start), theta: newTheta(own, cfg.SLO.Late),
		prompt: newLevel(own.Prompt, cfg.SLO.Late),
	}
	law, trust := cfg.Engine.CostModel, own.Fit.Trust
	if !law.Known() {
		law, trust = guessedLaw(milliseconds(cfg.SLO.TPOT)), own.Fit.Unknown
	}
	p.fit = newRefit(law, trust, own.Fit.Memory)
	return p
}

func (*probe) Name() string { return "headroom" }

// target is how long iterations may take on average, in milliseconds.
func (p *probe) target() float64 {
	if !p.shared {
		return float64(unhurried * milliseconds(p.slo.TPOT))
	}
	target := float64(p.theta.value() * milliseconds(p.slo.TPOT))
	if p.pressed > p.lines {
		target *= p.cfg.Floor.Overdrive
	}
	return target
}

// unhurried is the share of the SLO's TPOT that iterations may take where nobody waits for them:
// more than an engine ever needs.
const unhurried = 100

func (*probe) seconds(ms float64) time.Duration {
	return time.Duration(
		ms * float64(time.Millisecond))
}

// kvTokens is what a runner's KV cache holds; 0: unknown.
func (p *probe) kvTokens(r *probed) float64 {
	if r.kvTokens > 0 {
		return r.kvTokens
	}
	return float64(p.engine.KVTokens)
}

func (p *probe) Observe(now time.Time, o Observation) (changed bool) {
	changed = p.pass(now)
	switch {
	case o.Kind == RunnerJoined:
		r := &probed{
			yield: 1, stale: true, doubt: doubt{state: Fresh, seen: now, ceiling: math.Inf(1)},
			own:       own{lines: o.InFlight, prefilling: o.Prefilling},
			slotsPeak: peak{window: p.cfg.Reserve.Window},
			kvPeak:    peak{window: p.cfg.Reserve.Window},
		}
		if !p.Join(o.Runner, r) {
			return changed
		}
		if len(p.Members) == 1 {
			p.ticked = now
		}
		p.resized(len(p.Members)-1, len(p.Members))
		return true
	case o.Kind == RunnerLeft:
		if !p.Leave(o.Runner) {
			return changed
		}
		p.resized(len(p.Members)+1, len(p.Members))
		return true
	case o.Kind == Read && o.Runner == "":
		return p.gateway(now, o.Reading) || changed
	case o.Kind == Pressed:
		return p.press(o.Lines) || changed
	}
	m := p.Find(o.Runner)
	if m == nil {
		return changed
	}
	return p.about(now, m, o) || changed
}

// press takes note of how many lines deadlines ask for.
func (p *probe) press(lines float64) (changed bool) {
	pressed := lines / max(1, float64(len(p.Members)))
	if !(pressed >= 0) || pressed == p.pressed {
		return false
	}
	p.pressed = pressed
	for _, m := range p.Members {
		m.State.stale = true
	}
	return true
}

// about takes note of what happened at a runner.
func (p *probe) about(now time.Time, m *Member[*probed], o Observation) (changed bool) {
	r := m.State
	switch o.Kind {
	case Started:
		p.mix.start(o.PromptTokens, o.OutputTokens)
		r.trickle -= float64(p.fit.perToken() * float64(o.PromptTokens))
	case Answered:
		m.Answered()
		r.doubt.see(now)
		p.mix.answer(o.PromptTokens, o.OutputTokens)
		p.answered += float64(o.PromptTokens + o.OutputTokens)
		if o.OutputTokens > 1 && now.Sub(r.gapsAt) > p.cfg.Doubt.Soft &&
			now.Sub(r.metricsAt) > p.cfg.Doubt.Soft {
			// A mean over the line's whole life, waiting included: old, and too high rather than
			// too low.
			r.unstreamed(now, milliseconds(o.Latency)/float64(o.OutputTokens),
				o.Latency/time.Duration(max(1, r.own.lines)), p)
		}
	case FirstToken:
		r.doubt.see(now)
	case TokenGaps:
		r.doubt.see(now)
	case Shed:
		m.Hold(now, o.RetryAfter)
		p.cut(now, r)
	case Broken:
		r.doubt.lineBroke(now, p.cfg.Doubt)
	case Recalled:
		produced := milliseconds(o.Latency) / max(r.tempo.mean(), 1)
		p.wasted += float64(p.mix.prompt*min(1, o.Latency.Seconds())) + produced
		r.own.context -= produced
	case Read:
		if o.Reading.Source != Metrics || !r.metrics(now, o.Reading, p) {
			return false
		}
		r.doubt.see(o.Reading.Sampled)
	default:
		return false
	}
	if o.Kind != Read {
		r.own.see(now, o, &p.mix)
	}
	if o.Kind == TokenGaps {
		r.gaps(now, float64(o.Gaps), milliseconds(o.GapTime), p)
	}
	r.stale = true
	return true
}

// lineMix is what lines are like. Those that run tell that they are longer than what is known:
// until enough have ended, and when a job of another kind has begun. Of that the planner tells,
// too.
func (p *probe) lineMix() costmodel.Mix {
	mix := p.mix.mix()
	usual := mix.Output / 2 // age of lines that run, where all are alike
	if p.mix.seen >= mixtureKnown {
		usual = 1.5 * mix.Output // long ones are met more often
	}
	lines, context := 0.0, 0.0
	for _, m := range p.Members {
		lines += float64(m.State.own.lines)
		context += m.State.own.context
	}
	if age := context/max(lines, 1) - mix.Prompt; age > usual {
		mix.Output, mix.Context = 2*age, mix.Prompt+age
	}
	// as old on average, while they run, as such lines become
	if p.mix.expected > otherKind*mix.Output {
		mix.Output, mix.Context = p.mix.expected, max(mix.Context, mix.Prompt+p.mix.expected)
	}
	return mix
}

// bound keeps the lines within reach of those that run: an allowance that isn't used proves
// nothing.
func (p *probe) bound() {
	carried := 0.0
	for _, m := range p.Members {
		carried += float64(m.State.own.lines)
	}
	carried /= max(1, float64(len(p.Members)))
	reach, start := p.cfg.Pace.Reach, float64(p.cfg.Start)
	p.lines = max(p.lines, carried/reach-start, 1)
	p.lines = min(p.lines, float64(reach*carried)+start, float64(p.cfg.PerRunner))
}

// load is what interactive requests do on a runner of the pool, taken as a little more than it was;
// false: nobody has seen it.
func (p *probe) load() (l costmodel.Load, seen bool) {
	z := p.cfg.Reserve.Sigmas
	high := func(s *spread) float64 { return s.mean + float64(z*math.Sqrt(s.variance)) }
	n := 0.0
	for _, m := range p.Members {
		if r := m.State; !r.metricsAt.IsZero() {
			n++
			l.Running += high(&r.running)
			l.Context += high(&r.context)
			// Of a rate the mean over the memory is meant, which moves less than the single
			// samples.
			l.PromptRate += r.promptRate.mean + float64(z*math.Sqrt(r.promptRate.variance))/3
		}
	}
	n = max(n, 1)
	return costmodel.Load{Running: l.Running / n, Context: l.Context / n, PromptRate: l.PromptRate / n,
		PromptMean: typicalContext}, l.Running > 0
}

// resized steps the lines to the load that each runner will have now that there are more, or fewer,
// to share it: by as much as the law predicts, since feedback would need its time. Other changes of
// load come slowly enough for feedback.
func (p *probe) resized(from, to int) {
	for _, m := range p.Members {
		m.State.stale = true
	}
	l, seen := p.load()
	if !seen || from == 0 || to == 0 {
		return
	}
	law, mix, target := p.fit.fitted(), p.lineMix(),
		float64(p.theta.rest()*milliseconds(p.slo.TPOT))
	scale := float64(from) / float64(to)
	after := costmodel.Load{Running: l.Running * scale, Context: l.Context * scale,
		PromptRate: l.PromptRate * scale, PromptMean: l.PromptMean}
	p.lines *= max(1, law.Lines(after, mix, target)) / max(1, law.Lines(l, mix, target))
	p.bound()
}

// part is a runner's part of the lines. One whose iterations are longer than its peers' starts
// fewer prompts and so carries fewer; it is granted as many, since a router that looks at load
// sends interactive requests where our lines are few.
func (p *probe) part(r *probed) float64 {
	return min(max(float64(p.lines*r.yield), 1), float64(p.cfg.PerRunner))
}

// least is what the runner has that carries the fewest lines of ours, and the one that holds the
// least context of them.
type least struct{ lines, context float64 }

func (p *probe) least(now time.Time) least {
	l := least{lines: math.Inf(1), context: math.Inf(1)}
	for _, m := range p.Members {
		if r := m.State; r.free(now, m) {
			l.lines = min(l.lines, float64(r.own.lines))
			l.context = min(l.context, r.own.context)
		}
	}
	return l
}

// free says whether only its iterations keep a runner from carrying more lines. One that sheds, is
// not seen, or is full of interactive requests carries few for reasons of its own, and its peers
// need not wait for it.
func (r *probed) free(now time.Time, m *Member[*probed]) bool {
	full := r.granted.Reason == ReasonKV || r.granted.Reason == ReasonSlots
	return r.yield == 1 && !m.Held(now) && r.doubt.state == Fresh && !full
}

// together is how many lines a runner may carry for the pool's to stay alike. A router that looks
// at load counts what they hold, which old lines do more of than young ones: while a runner holds
// much more than another, no more lines start there.
func (p *probe) together(r *probed, l least) float64 {
	most := float64(p.cfg.Pace.Apart*l.lines) + apartAnyway/2
	if r.own.context > float64(p.cfg.Pace.Held*l.context)+float64(apartAnyway*p.lineMix().Context) {
		most = min(most, float64(r.own.lines))
	}
	return most
}

// apartAnyway is by how many lines' context runners may differ whatever they hold, and by half as
// many lines: few are never alike.
const apartAnyway = 8

// cut lowers a runner's lines after a shed, once per DecreaseEvery: the lines of one moment are
// shed together.
func (p *probe) cut(now time.Time, r *probed) {
	if !r.lastCut.IsZero() && now.Sub(r.lastCut) < p.cfg.DecreaseEvery {
		return
	}
	r.lastCut = now
	carried := min(1, float64(r.own.lines)/max(p.lines, 1))
	r.yield = max(float64(min(r.yield, carried)*p.cfg.Decrease), 1/max(p.lines, 1))
}

// gateway takes note of how interactive requests fared.
func (p *probe) gateway(now time.Time, g *Reading) (changed bool) {
	if !g.Sampled.After(p.gatewayAt) && p.cfg.Planted != StalenessIgnored {
		return false
	}
	p.gatewayAt = g.Sampled
	if p.ownShare.mean < innocentShare || p.cfg.Planted == LatenessForgotten {
		p.ttft.since(g.TTFT) // what is late while next to nothing of ours runs is not our doing
		p.tpot.since(g.TPOT)
		return true
	}
	requests, late, ok := p.ttft.since(g.TTFT)
	if ok {
		p.prompt.spend(now, requests, late, 1, 1)
		if late > max(float64(lateSign*requests), 1) {
			p.lateFirst = now
		}
	}
	if requests, late, ok := p.tpot.since(g.TPOT); ok {
		p.theta.spend(now, requests, late, p.long())
	}
	for _, m := range p.Members {
		m.State.stale = true
	}
	return true
}

const (
	// innocentShare is the share of a pool below which what runs of ours is not blamed for what is
	// late, over blameMemory: requests that come back have felt that long what was there.
	innocentShare = 0.05
	blameMemory   = 30 * time.Second
	// lateSign is the share of late first tokens that is a sign for the brake.
	lateSign = 0.05
)

// pass lets time go by, in seconds.
func (p *probe) pass(now time.Time) (changed bool) {
	dt := now.Sub(p.ticked)
	if len(p.Members) == 0 || dt < tick {
		return false
	}
	p.ticked = now
	fade := share(dt, time.Hour)
	p.answered -= float64(fade * p.answered)
	p.wasted -= float64(fade * p.wasted)
	p.strain(now)
	p.theta.see(now, p.promptPart())
	ours, all, spent := 0.0, 0.0, 0.0
	for _, m := range p.Members {
		r := m.State
		ours += float64(r.own.lines)
		all += float64(r.own.lines) + r.running.mean
		spent += float64(p.fit.perToken() * (r.own.computed - r.spent))
		r.spent = r.own.computed
		if p.cfg.Planted != StalenessIgnored {
			r.doubt.pass(now, min(dt, 10*time.Second), p.part(r), p.cfg.Doubt)
		}
		r.yield = min(1, float64(r.yield*(1+float64(p.cfg.Doubt.Recover*dt.Seconds()))))
		r.trickle = min(r.trickle+float64(p.cfg.Pace.Trickle*milliseconds(dt)), 1)
		p.brake(now, r)
		r.stale = true
	}
	time := milliseconds(dt) * float64(len(p.Members))
	p.ownShare.add(now, blameMemory, max(ours/max(all, 1), spent/time))
	return true
}

// strain notes since when the pool as a whole takes too long for its iterations, whatever our
// prompts: those can wait, and do.
func (p *probe) strain(now time.Time) {
	sum, n := 0.0, 0.0
	for _, m := range p.Members {
		if r := m.State; r.base.mean() > 0 && p.recent(now, r.gapsAt) {
			sum += r.base.mean()
			n++
		}
	}
	if sum <= float64(n*max(float64(p.cfg.Brake.Pool*milliseconds(p.slo.TPOT)), p.target())) {
		p.strained = time.Time{}
	} else if p.strained.IsZero() {
		p.strained = now
	}
}

func (p *probe) recent(now, at time.Time) bool {
	return !at.IsZero() && now.Sub(at) <= p.cfg.Doubt.Soft
}

// brake recalls lines of a runner while interactive requests suffer by them. Either way it takes
// two signs: iterations are much too long here, and interactive requests wait or are late; or they
// are too long in all the pool, and what runs of ours is a good part of it.
func (p *probe) brake(now time.Time, r *probed) {
	if !p.shared {
		return
	}
	cfg, promise := p.cfg.Brake, milliseconds(p.slo.TPOT)
	above := float64(cfg.Above * promise)
	if budget := p.engine.MaxBatchedTokens; budget > 0 {
		longest := float64(p.fit.factor[0]*p.fit.base) + float64(p.fit.perToken()*float64(budget))
		above = min(above, float64(cfg.Reach*longest))
	}
	here := r.tempo.mean() > above && p.recent(now, r.gapsAt) &&
		(r.waiting >= 1 && p.recent(now, r.metricsAt) || p.recent(now, p.lateFirst))
	all := !p.strained.IsZero() && r.base.mean() > p.target()
	ours := float64(float64(r.own.lines) * p.fit.perSequence())
	if !here && !all || ours <= float64(cfg.Ours*promise) {
		r.strained = time.Time{}
		return
	}
	if r.strained.IsZero() {
		r.strained = now
	}
	if now.Sub(r.strained) < cfg.After {
		return
	}
	keep := r.own.lines
	if p.wasted < float64(cfg.Waste*p.answered) {
		keep -= int(math.Ceil(float64(cfg.Share * float64(r.own.lines))))
	}
	r.keep, r.braked = keep, now.Add(cfg.Hold)
}

func (p *probe) Allowance(now time.Time) Allowance {
	p.pass(now)
	p.granted = p.granted[:0]
	var until time.Time
	if len(p.Members) > 0 {
		until = p.ticked.Add(tick)
	}
	l := p.least(now)
	for _, m := range p.Members {
		r := m.State
		if r.stale || !r.due.IsZero() && !r.due.After(now) {
			p.grant(now, m, l)
		}
		p.granted = append(p.granted, r.granted)
		if !r.due.IsZero() && r.due.Before(until) {
			until = r.due
		}
	}
	a := Pooled(p.granted, p.PerPool)
	a.Streams, a.Until = p.cfg.Streams, until
	return a
}

// grant works out a runner's part.
func (p *probe) grant(now time.Time, m *Member[*probed], l least) {
	r := m.State
	r.stale, r.due = false, time.Time{}
	g := RunnerAllowance{Runner: m.ID, Lines: int(min(p.part(r), p.together(r, l)) + 0.5),
		Reason: ReasonTokenTime}
	if r.tempo.mean() == 0 || r.own.lines < g.Lines && r.tempo.mean() < p.target() {
		g.Reason = ReasonLearning
	}
	lower := func(lines int, why Reason) {
		if lines < g.Lines {
			g.Lines, g.Reason = lines, why
		}
	}
	safe, why := r.safe(now, p)
	lower(safe, why)
	if p.cfg.Planted == FloorAboveSafety {
		safe = NoLimit
	}
	g.Lines = max(g.Lines, int(min(p.pressed, float64(p.cfg.Floor.Share*float64(safe)))))
	if ceiling, why := r.doubt.bound(now); ceiling < float64(g.Lines) {
		lower(int(ceiling), why)
		if r.doubt.state == Dark && now.Before(r.doubt.retry) {
			r.due = r.doubt.retry
		}
	}
	tokens, more := r.prompts(now, p)
	g.Prompt = int(math.Ceil(tokens))
	switch {
	case r.own.lines >= g.Lines || r.own.prefilling < g.Prompt:
	case tokens >= p.prompt.value():
		g.Reason = ReasonPrompt
	default:
		g.Reason = ReasonTokenTime
		if !more.IsZero() {
			r.due = more
		}
	}
	if now.Before(r.braked) {
		lower(r.keep, ReasonBrake)
		if !r.strained.IsZero() {
			g.Recall = g.Lines >= r.keep
			g.Prompt = 0
			g.Reason = ReasonBrake
		}
	}
	if now.Before(r.crowd.until) {
		lower(r.crowd.keep, ReasonKV)
		g.Recall = g.Recall || r.crowd.recall && g.Lines >= r.crowd.keep
	}
	if m.Held(now) {
		g.Lines, g.Recall = 0, false
		r.due, g.Reason = m.HeldUntil()
	}
	r.granted = g
}
