package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/portable"
)

// Name is the policy's name in configurations.
const Name = "headroom"

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		Needs:   flowcontrol.Needs{Readings: true, Streams: true, UnsharedIterations: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			return New(cfg), nil
		},
	})
}

// Controller is the policy for one pool. The package comment describes it.
type Controller struct {
	cfg    Config
	tuning Tuning
	slo    flowcontrol.SLO
	engine flowcontrol.Engine
	shared bool
	roster flowcontrol.Roster[*runner]

	target       targetShare
	promptTokens level
	sizes        lineSizes
	fit          costFit
	outcomes     outcomes

	lines   float64 // that a runner may have, by feedback
	pressed float64 // that a runner would have to have, by deadlines

	// strained is since when iterations are too long in all the pool; zero: they are not.
	strained time.Time
	// ownShare is the share of the requests running in the pool that are batch lines, or the share
	// of its time that their prompts take, if that is more.
	ownShare spread
	waste    waste

	ticked  time.Time                     // when pass last did something
	granted []flowcontrol.RunnerAllowance // the last allowance's Runners
}

// tick is how often time passes for the controller.
const tick = time.Second

// New returns a controller for one pool. cfg must be valid.
func New(cfg flowcontrol.Config) *Controller {
	own := flowcontrol.OwnConfig[Config](cfg, Name)
	model, correction := cfg.Engine.CostModel, own.Tuning.Fit.MaxCorrection
	if !model.Known() {
		model = guessedModel(milliseconds(cfg.SLO.TPOT))
		correction = own.Tuning.Fit.MaxCorrectionUnknown
	}
	return &Controller{
		cfg: own, tuning: own.Tuning, slo: cfg.SLO, engine: cfg.Engine, shared: cfg.Shared,
		roster:       flowcontrol.Roster[*runner]{PerPool: own.PerPool},
		target:       newTargetShare(own.Tuning, cfg.SLO.Late),
		promptTokens: newLevel(own.Tuning.PromptTokens, cfg.SLO.Late),
		fit:          newCostFit(model, correction, own.Tuning.Fit.HalfLife),
		lines:        float64(own.Start),
	}
}

// Name implements flowcontrol.Controller.
func (*Controller) Name() string { return Name }

// Observe implements flowcontrol.Controller.
func (c *Controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	changed = c.Advance(now)
	switch {
	case o.Kind == flowcontrol.RunnerJoined:
		return c.join(now, o) || changed
	case o.Kind == flowcontrol.RunnerLeft:
		return c.leave(o.Runner) || changed
	case o.Kind == flowcontrol.Read && o.Runner == "":
		return c.readGateway(now, o.Reading) || changed
	case o.Kind == flowcontrol.DeadlineDemand:
		return c.press(o.Lines) || changed
	}
	m := c.roster.Find(o.Runner)
	if m == nil {
		return changed
	}
	return c.observe(now, m, o) || changed
}

func (c *Controller) join(now time.Time, o flowcontrol.Observation) bool {
	if !c.roster.Join(o.Runner, newRunner(now, o.InFlight, o.Prefilling, c.tuning)) {
		return false
	}
	if len(c.roster.Members) == 1 {
		c.ticked = now
	}
	c.resized(len(c.roster.Members)-1, len(c.roster.Members))
	return true
}

func (c *Controller) leave(id string) bool {
	if !c.roster.Leave(id) {
		return false
	}
	c.resized(len(c.roster.Members)+1, len(c.roster.Members))
	return true
}

// press notes how many lines deadlines ask for.
func (c *Controller) press(lines float64) (changed bool) {
	pressed := lines / max(1, float64(len(c.roster.Members)))
	if !(pressed >= 0) || pressed == c.pressed {
		return false
	}
	c.pressed = pressed
	c.invalidate()
	return true
}

// invalidate makes the next allowance compute all grants again.
func (c *Controller) invalidate() {
	for _, m := range c.roster.Members {
		m.State.changed = true
	}
}

// observe takes over what happened at a runner.
func (c *Controller) observe(
	now time.Time, m *flowcontrol.Member[*runner], o flowcontrol.Observation,
) (changed bool) {
	r := m.State
	switch o.Kind {
	case flowcontrol.Started:
		c.sizes.start(o.PromptTokens, o.OutputTokens)
		r.iterations.trickle -= portable.Rounded(c.fit.perToken() * float64(o.PromptTokens))
	case flowcontrol.Answered:
		m.Answered()
		r.staleness.hear(now)
		c.sizes.answer(o.PromptTokens, o.OutputTokens)
		c.waste.answered += float64(o.PromptTokens + o.OutputTokens)
		if o.OutputTokens > 1 && !c.recent(now, r.iterations.seenAt) &&
			!c.recent(now, r.interactive.seenAt) {
			// A mean over the line's life, waiting included: old, and too high rather than too low.
			c.unstreamed(r, milliseconds(o.Latency)/float64(o.OutputTokens),
				o.Latency/time.Duration(max(1, r.own.lines)))
		}
	case flowcontrol.FirstToken, flowcontrol.TokenGaps:
		r.staleness.hear(now)
	case flowcontrol.Shed:
		m.Hold(now, o.RetryAfter)
		r.cut(now, c.lines, c.tuning)
	case flowcontrol.Broken:
		r.staleness.lineBroke(now, c.tuning.Staleness)
	case flowcontrol.Evicted:
		produced := milliseconds(o.Latency) / max(r.iterations.all.mean(), 1)
		c.waste.wasted += portable.Rounded(c.sizes.prompt*min(1, o.Latency.Seconds())) + produced
		r.own.context -= produced
	case flowcontrol.Read:
		if o.Reading.Source != flowcontrol.Metrics || !c.readMetrics(now, r, o.Reading) {
			return false
		}
		r.staleness.hear(o.Reading.Sampled)
	default:
		return false
	}
	if o.Kind != flowcontrol.Read {
		r.own.observe(now, o, &c.sizes)
	}
	if o.Kind == flowcontrol.TokenGaps {
		c.tokenGaps(now, r, float64(o.Gaps), milliseconds(o.GapTime))
	}
	r.changed = true
	return true
}

// recent reports whether something was seen within AgingAfter.
func (c *Controller) recent(now, at time.Time) bool {
	return !at.IsZero() && now.Sub(at) <= c.tuning.Staleness.AgingAfter
}

// readMetrics takes over an engine's metrics; false if they show nothing new.
func (c *Controller) readMetrics(now time.Time, r *runner, m *flowcontrol.Reading) bool {
	s, ok := r.interactive.read(now, m, &r.own, c.engine.KVTokens)
	if !ok {
		return false
	}
	if capacity := r.interactive.capacity(c.engine.KVTokens); m.KVUsed >= 0 && capacity > 0 {
		r.kvPressure.update(now, &r.own, m.KVUsed, capacity, s.preempted,
			c.waste.allows(c.tuning.Brake), c.tuning)
	}
	if s.iteration > 0 && !c.recent(now, r.iterations.seenAt) {
		c.unstreamed(r, s.iteration, s.period)
	}
	return true
}

// unstreamed takes over an iteration time that was not seen token by token.
func (c *Controller) unstreamed(r *runner, ms float64, period time.Duration) {
	r.iterations.unstreamed(ms, period, c.tuning.Pace)
	c.follow(r, min(period, 5*time.Second), c.tuning.Pace.GainUnstreamed)
}

// tokenGaps takes over n gaps between tokens, which took ms milliseconds.
func (c *Controller) tokenGaps(now time.Time, r *runner, n, ms float64) {
	period, ok := r.iterations.gaps(now, n, ms, c.targetTime(), &r.own, &c.fit, c.tuning.Pace)
	if !ok {
		return
	}
	if m, ok := r.iterations.measured(); ok {
		c.correct(now, r, m)
	}
	c.follow(r, period, c.tuning.Pace.Gain)
}

// correct corrects the cost model by a measurement.
func (c *Controller) correct(now time.Time, r *runner, m measurement) {
	mean, tokens := m.time/m.iterations, m.prompted/m.iterations
	decoding := r.own.decoding(c.sizes.prompt)
	if in := &r.interactive; c.recent(now, in.seenAt) {
		decoding += in.running.mean
		tokens += in.promptRate.mean * mean / 1000
	}
	c.fit.add(decoding, tokens, mean)
}

// readGateway takes over how interactive requests fared.
func (c *Controller) readGateway(now time.Time, g *flowcontrol.Reading) (changed bool) {
	if !c.outcomes.newer(g) {
		return false
	}
	if c.ownShare.mean < innocentShare {
		// Late requests are not our doing while next to nothing of ours runs.
		c.outcomes.skip(g)
		return true
	}
	if requests, late, ok := c.outcomes.ttft.since(g.TTFT); ok {
		c.promptTokens.update(now, requests, late, 1, 1)
		c.outcomes.sign(now, requests, late)
	}
	if requests, late, ok := c.outcomes.tpot.since(g.TPOT); ok {
		c.target.update(now, requests, late, c.lag())
	}
	c.invalidate()
	return true
}

// Advance lets time pass, in steps of a second. Observe and Allowance call it.
func (c *Controller) Advance(now time.Time) (changed bool) {
	dt := now.Sub(c.ticked)
	if len(c.roster.Members) == 0 || dt < tick {
		return false
	}
	c.ticked = now
	c.waste.fade(dt)
	c.strain(now)
	c.target.seePart(now, c.prefillPart())
	ours, all, spent := 0.0, 0.0, 0.0
	for _, m := range c.roster.Members {
		r := m.State
		ours += float64(r.own.lines)
		all += float64(r.own.lines) + r.interactive.running.mean
		spent += portable.Rounded(c.fit.perToken() * (r.own.computed - r.computed))
		r.computed = r.own.computed
		r.staleness.pass(now, min(dt, 10*time.Second), c.part(r), c.tuning.Staleness)
		r.yield = min(1,
			r.yield*(1+portable.Rounded(c.tuning.Staleness.Recovery*dt.Seconds())))
		r.iterations.trickle = min(
			r.iterations.trickle+portable.Rounded(c.tuning.Pace.MinPromptShare*milliseconds(dt)), 1)
		c.updateBrake(now, r)
		r.changed = true
	}
	time := milliseconds(dt) * float64(len(c.roster.Members))
	c.ownShare.add(now, blameWindow, max(ours/max(all, 1), spent/time))
	return true
}

// strain notes since when iterations of the pool as a whole are too long without the prompts of
// batch lines: those can wait, and do.
func (c *Controller) strain(now time.Time) {
	sum, n := 0.0, 0.0
	for _, m := range c.roster.Members {
		if it := &m.State.iterations; it.base.mean() > 0 && c.recent(now, it.seenAt) {
			sum += it.base.mean()
			n++
		}
	}
	limit := c.tuning.Brake.PoolAbove * milliseconds(c.slo.TPOT)
	if sum <= n*max(limit, c.targetTime()) {
		c.strained = time.Time{}
	} else if c.strained.IsZero() {
		c.strained = now
	}
}

// updateBrake evicts lines of a runner while interactive requests suffer from them. It takes two
// signs: iterations are much too long on the runner, and interactive requests wait or are late; or
// iterations are too long in all the pool, and the runner's lines are a good part of the reason.
func (c *Controller) updateBrake(now time.Time, r *runner) {
	if !c.shared {
		return
	}
	cfg, objective := c.tuning.Brake, milliseconds(c.slo.TPOT)
	above := cfg.Above * objective
	if budget := c.engine.MaxBatchedTokens; budget > 0 {
		longest := c.fit.perIteration() + portable.Rounded(c.fit.perToken()*float64(budget))
		above = min(above, cfg.MaxOfLongest*longest)
	}
	it, in := &r.iterations, &r.interactive
	here := it.all.mean() > above && c.recent(now, it.seenAt) &&
		(in.waiting >= 1 && c.recent(now, in.seenAt) || c.recent(now, c.outcomes.lateFirst))
	all := !c.strained.IsZero() && it.base.mean() > c.targetTime()
	ours := float64(r.own.lines) * c.fit.perSequence()
	signs := (here || all) && ours > cfg.MinOwnShare*objective
	r.brake.update(now, signs, r.own.lines, c.waste.allows(cfg), cfg)
}

// Allowance implements flowcontrol.Controller.
func (c *Controller) Allowance(now time.Time) flowcontrol.Allowance {
	c.Advance(now)
	c.granted = c.granted[:0]
	var until time.Time
	if len(c.roster.Members) > 0 {
		until = c.ticked.Add(tick)
	}
	fewest := c.fewest(now)
	for _, m := range c.roster.Members {
		r := m.State
		if r.changed || !r.due.IsZero() && !r.due.After(now) {
			c.grant(now, m, fewest)
		}
		c.granted = append(c.granted, r.granted)
		if !r.due.IsZero() && r.due.Before(until) {
			until = r.due
		}
	}
	a := flowcontrol.Pooled(c.granted, c.roster.PerPool)
	a.Streams, a.Until = c.cfg.Streams, until
	return a
}

// grant computes a runner's part of the allowance.
func (c *Controller) grant(now time.Time, m *flowcontrol.Member[*runner], fewest fewest) {
	r := m.State
	r.changed, r.due = false, time.Time{}
	mix := c.LineMix()
	g := flowcontrol.RunnerAllowance{Runner: m.ID, Reason: ReasonTokenTime,
		Lines: int(min(c.part(r), fewest.bound(r, mix, c.tuning.Pace)) + 0.5)}
	if mean := r.iterations.all.mean(); mean == 0 ||
		r.own.lines < g.Lines && mean < c.targetTime() {
		g.Reason = flowcontrol.ReasonLearning
	}
	lower := func(lines int, reason flowcontrol.Reason) {
		if lines < g.Lines {
			g.Lines, g.Reason = lines, reason
		}
	}
	safe, reason := r.safe(now, c.lineKV(mix), c.engine, c.cfg)
	lower(safe, reason)
	g.Lines = max(g.Lines,
		int(min(c.pressed, c.tuning.Deadlines.SafeShare*float64(safe))))
	if ceiling, reason := r.staleness.bound(now); ceiling < float64(g.Lines) {
		lower(int(ceiling), reason)
		if r.staleness.state == unreachable && now.Before(r.staleness.retry) {
			r.due = r.staleness.retry
		}
	}
	tokens, more := c.prompts(now, r)
	g.Prompt = int(math.Ceil(tokens))
	switch {
	case r.own.lines >= g.Lines || r.own.prefilling < g.Prompt:
	case tokens >= c.promptTokens.value():
		g.Reason = flowcontrol.ReasonPrompt
	default:
		g.Reason = ReasonTokenTime
		if !more.IsZero() {
			r.due = more
		}
	}
	if now.Before(r.brake.until) {
		lower(r.brake.keep, ReasonBrake)
		if r.brake.evicts() {
			g.Evict = g.Lines >= r.brake.keep
			g.Prompt = 0
			g.Reason = ReasonBrake
		}
	}
	if now.Before(r.kvPressure.until) {
		lower(r.kvPressure.keep, ReasonKV)
		g.Evict = g.Evict || r.kvPressure.evict && g.Lines >= r.kvPressure.keep
	}
	if m.Held(now) {
		g.Lines, g.Evict = 0, false
		r.due, g.Reason = m.HeldUntil()
	}
	r.granted = g
}

// prompts returns how many prompt tokens may wait on a runner when another line starts, and when
// that will be more.
func (c *Controller) prompts(now time.Time, r *runner) (tokens float64, more time.Time) {
	waiting := float64(c.tuning.Pace.MaxPrompts) * max(c.sizes.prompt, 1)
	if !c.shared { // enough for two chunks, of fewer requests than engines shed at
		return min(max(c.tuning.PromptTokens.Max, float64(2*c.engine.MaxBatchedTokens)),
			waiting/2), time.Time{}
	}
	return r.iterations.prompts(now, min(c.promptTokens.value(), waiting), c.targetTime(), &r.own,
		&c.fit, c.tuning.Pace)
}
