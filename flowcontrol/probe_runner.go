package flowcontrol

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// probed is what probe knows of a runner. Times of iterations are in milliseconds.
type probed struct {
	own own
	// yield is the share of its lines that it keeps after sheds; 1: all.
	yield float64

	// How long iterations take.
	gapsAt  time.Time // of the last report of token gaps; zero: none
	tempo   tempo     // over PaceConfig.Memory
	base    tempo     // the same without our prompts
	quietAt time.Time // of the last report in which no prompt of ours was computed
	// What was told in such reports, and in the others, and is not yet learnt from.
	quiet, busy unlearnt
	credit      float64 // iteration time left over for prompts at gapsAt, as far as told
	accounted   float64 // own.computed up to which prompts are part of what was told
	trickle     float64 // time that prompts may take in any case, saved up to trickleAt

	// What interactive requests do there.
	metricsAt  time.Time // Sampled of the last metrics that moved; zero: none
	counted    Reading   // the last one, for its counters
	ownOutput  float64   // own.output at that time
	running    spread
	context    spread
	promptRate spread
	waiting    float64 // at metricsAt
	slotsPeak  peak
	kvPeak     peak
	kvTokens   float64 // as told; 0: unknown

	doubt    doubt
	strained time.Time // since when both signs of the brake are there; zero: they are not
	braked   time.Time // until when the lines stay down; zero: not
	keep     int       // lines, while braked
	lastCut  time.Time // for a shed
	crowd    crowd

	spent float64 // own.computed, as of the last second

	granted RunnerAllowance
	due     time.Time // when time alone changes it; zero: never
	stale   bool      // it must be computed again
}

// longestSilence is how long the time since the last token gaps is accounted for by what came
// before. Nothing decodes there, or it is stuck: what it does is unknown.
const longestSilence = 2 * time.Second

// gaps takes note of how long iterations took: n of them, in ms milliseconds. Where several streams
// were counted, they saw the same iterations: more time than has passed stands for that.
func (r *probed) gaps(now time.Time, n, ms float64, p *probe) {
	since := milliseconds(longestSilence)
	if !r.gapsAt.IsZero() {
		since = min(since, milliseconds(now.Sub(r.gapsAt)))
	}
	if since <= 0 {
		return
	}
	elapsed := ms
	if ms > 1.5*since { // a report may hold a gap or two from before the last
		n, ms, elapsed = n*since/ms, since, since
	} else if !r.gapsAt.IsZero() && now.Sub(r.gapsAt) <= longestSilence {
		elapsed = max(ms, since)
	}
	computed := r.own.computed - r.accounted
	if now.Sub(r.gapsAt) > longestSilence {
		computed = 0 // it was in time that nobody saw
	}
	covered := ms / elapsed
	if covered > 0.9 { // reports don't begin where gaps do
		covered, elapsed = 1, ms
	}
	token := p.fit.perToken()
	quiet := computed == 0 && r.own.prefilling == 0
	if quiet {
		r.quietAt = now
	}
	// What prompts took is taken off by the law only where it can't be seen for long: a law that is
	// wrong would prove itself. A prompt is known to be computed after its time was told, so that
	// the rest may be less than nothing for once.
	if quiet || now.Sub(r.quietAt) > p.cfg.Pace.Memory {
		r.base.add(p.cfg.Pace.Memory, p.seconds(ms), n, ms-float64(covered*token*computed))
	}
	// Nobody of ours decoded in the rest of the time, so that nobody saw what our own prompts cost
	// there.
	iterations := n + max(0, elapsed-ms-float64((1-covered)*token*computed))/r.atBase(p)
	r.tempo.add(p.cfg.Pace.Memory, p.seconds(elapsed), iterations, elapsed)

	// What was saved up or owed since the last report is replaced by what is known now.
	target := p.target()
	r.credit += float64(iterations*target) - elapsed
	r.credit = min(max(r.credit, -milliseconds(p.cfg.Pace.Debt)), milliseconds(p.cfg.Pace.Save))
	r.gapsAt, r.accounted = now, r.own.computed

	sample := &r.busy
	if quiet {
		sample = &r.quiet
	}
	sample.iterations += iterations
	sample.time += elapsed
	sample.prompted += computed
	r.learn(now, sample, p)
	r.follow(p.seconds(elapsed), p.cfg.Pace.Gain, p)
}

// unlearnt is some iterations, their milliseconds and our prompt tokens computed in them.
type unlearnt struct{ iterations, time, prompted float64 }

// learn corrects the law once enough time has come together: a prompt is known to be computed a
// moment after its iterations were told, so that short times mistake what belongs to what. Times
// with prompts of ours and times without are learnt from apart: pacing keeps their mean where it
// should be, whatever a prompt costs, so that the mean of both tells nothing of it.
func (r *probed) learn(now time.Time, u *unlearnt, p *probe) {
	if p.seconds(u.time) < enoughToLearn {
		return
	}
	mean, tokens, decoding := u.time/u.iterations, u.prompted/u.iterations,
		r.own.decoding(p.mix.prompt)
	*u = unlearnt{}
	if p.recent(now, r.metricsAt) {
		decoding += r.running.mean
		// interactive prompt tokens of an iteration
		tokens += float64(r.promptRate.mean*mean) / 1000
	}
	p.fit.learn(decoding, tokens, mean)
}

const enoughToLearn = 5 * time.Second

// atBase is how long an iteration without our prompts takes.
func (r *probed) atBase(p *probe) float64 {
	if base := r.base.mean(); base > 0 {
		return max(base, p.fit.factor[0]*p.fit.base/2)
	}
	return max(1, p.fit.factor[0]*p.fit.base)
}

// follow moves the pool's lines towards the target, for what was seen of one of its runners over a
// time.
func (r *probed) follow(d time.Duration, gain float64, p *probe) {
	mix := p.lineMix()
	law := p.fit.fitted()
	// Lines that have just begun will hold more context than they do, and make iterations longer by
	// that.
	growth := float64(law.KV * max(0, float64(float64(r.own.lines)*mix.Context)-r.own.context))
	life := p.life(mix, r.tempo.mean())
	// And it is the lines that may run whose iterations are meant: those that still are to start,
	// or to end, will change them. Where lines live shorter than that takes to tell, they have.
	growth += float64(float64(p.lag(life)*law.PerLine(mix)) * (p.lines - float64(r.own.lines)))
	off := p.target() - (r.tempo.mean() + growth)
	if p.cfg.Planted == SignFlipped {
		off = -off
	}
	// Lines that live long can't be taken back for long: what is short beside their lives is left
	// to the prompts.
	gain = min(gain, p.cfg.Pace.Lives/max(life, 1))
	seconds := min(d.Seconds(), 5)
	move := float64(float64(gain*seconds)*off) / law.PerLine(mix)
	p.lines += min(move, float64(seconds*(1+float64(p.cfg.Pace.Slew*p.lines)))) /
		float64(len(p.Members))
	p.bound()
}

// prompts is how many prompt tokens may wait on the runner when another line starts, so that
// iterations keep to the target, and when that will be more. A prompt spends credit, iterations
// below the target earn it: so prompts follow each other as evenly as interactive ones leave room
// for, and none starts while those that did take their time.
func (r *probed) prompts(now time.Time, p *probe) (tokens float64, more time.Time) {
	waiting := float64(float64(p.cfg.Pace.Prompts) * max(p.mix.prompt, 1))
	if !p.shared { // enough for two chunks, of fewer requests than engines shed at
		return min(max(p.cfg.Prompt.Most, float64(2*p.engine.MaxBatchedTokens)), waiting/2),
			time.Time{}
	}
	most := min(p.prompt.value(), waiting)
	target, base, token := p.target(), r.atBase(p), p.fit.perToken()
	silence := now.Sub(r.gapsAt)
	if r.gapsAt.IsZero() || silence > longestSilence {
		return most, time.Time{} // nothing is known: one after the other
	}
	// of a token: its time, in which no iteration earns anything
	price := float64(token * target / base)
	earn := target/base - 1 // a millisecond
	credit := r.credit + float64(milliseconds(silence)*earn) -
		float64((r.own.computed-r.accounted)*price)
	credit = min(credit, milliseconds(p.cfg.Pace.Save))
	owed := float64(float64(r.own.prefilling) * price)
	if p.cfg.Planted == SignFlipped {
		return most, time.Time{}
	}
	if credit > owed {
		return min(credit/price, most), time.Time{}
	}
	if r.trickle > 0 && r.own.prefilling == 0 {
		return 1, time.Time{}
	}
	end := r.gapsAt.Add(longestSilence + 1)
	if earn > 0 {
		if wait := p.seconds((owed - credit) / earn); wait < end.Sub(now) {
			end = now.Add(max(wait, 5*time.Millisecond))
		}
	}
	return max(0, credit/price), end
}

// metrics takes note of an engine's metrics. Those that do not move are none: the source is stuck,
// whatever it says of the time.
func (r *probed) metrics(now time.Time, m *Reading, p *probe) (moved bool) {
	if !m.Sampled.After(r.metricsAt) && p.cfg.Planted != StalenessIgnored {
		return false
	}
	then := r.own.at(m.Sampled)
	busy := then.output-r.ownOutput >= 32 // tokens of ours, which its counters must show
	if !r.metricsAt.IsZero() && busy && m.OutputTokens == r.counted.OutputTokens &&
		p.cfg.Planted != StalenessIgnored {
		return false
	}
	before, at := r.counted, r.metricsAt
	past := r.own.at(at)
	r.counted, r.metricsAt, r.ownOutput = *m, m.Sampled, then.output
	if p.cfg.Planted == OwnLoadNotOwned {
		then, past = ownAt{}, ownAt{}
	}
	memory := 6 * m.Sampled.Sub(at)
	if at.IsZero() || memory > time.Minute {
		memory = time.Minute
	}
	r.waiting = 0
	if m.Waiting >= 0 {
		r.waiting = max(0, m.Waiting-then.waiting)
	}
	if m.Running >= 0 {
		ours := max(0, then.lines-min(then.waiting, max(m.Waiting, 0)))
		running := max(0, m.Running-ours)
		r.running.add(m.Sampled, memory, running)
		r.slotsPeak.add(now, running+r.waiting)
	}
	if m.KVTokens > 0 {
		r.kvTokens = m.KVTokens
	}
	if capacity := p.kvTokens(r); m.KVUsed >= 0 && capacity > 0 {
		held := float64(m.KVUsed * capacity)
		r.context.add(m.Sampled, memory, max(0, held-then.context))
		r.kvPeak.add(now, max(0, held-then.context))
		r.crowded(now, m.KVUsed, capacity, !at.IsZero() && m.Preemptions > before.Preemptions, p)
	}
	cached := max(0, m.CachedTokens-before.CachedTokens)
	if !(cached >= 0) {
		cached = 0
	}
	if computed := m.PromptTokens - before.PromptTokens - cached; !at.IsZero() && computed >= 0 {
		seconds := m.Sampled.Sub(at).Seconds()
		r.promptRate.add(m.Sampled, memory, max(0, computed-(then.computed-past.computed))/seconds)
	}
	if produced := m.OutputTokens - before.OutputTokens; !at.IsZero() && produced > 0 &&
		m.Running > 0 && now.Sub(r.gapsAt) > p.cfg.Doubt.Soft {
		// Each running request gets one token of an iteration: coarse, and the best there is where
		// nothing is streamed.
		r.unstreamed(now, milliseconds(m.Sampled.Sub(at))*m.Running/produced, m.Sampled.Sub(at), p)
	}
	return true
}

// unstreamed takes note of an iteration time that was not seen token by token.
func (r *probed) unstreamed(now time.Time, ms float64, over time.Duration, p *probe) {
	// it counts half: it is late, and no more than a guess
	iterations := float64(milliseconds(over) / ms / 2)
	r.tempo.add(p.cfg.Pace.Memory, over/2, iterations, float64(iterations*ms))
	r.base.add(p.cfg.Pace.Memory, over/2, iterations, float64(iterations*ms))
	r.follow(min(over, 5*time.Second), p.cfg.Pace.GainUnstreamed, p)
}

// load is what interactive requests do there, taken as a little more than it was.
func (r *probed) load(p *probe) costmodel.Load {
	z := p.cfg.Reserve.Sigmas
	high := func(s *spread) float64 { return s.mean + float64(z*math.Sqrt(s.variance)) }
	// Of a rate the mean over the memory is meant, which moves less than the single samples.
	rate := r.promptRate.mean + float64(z*math.Sqrt(r.promptRate.variance))/3
	return costmodel.Load{Running: high(&r.running), Context: high(&r.context), PromptRate: rate,
		PromptMean: typicalContext}
}

// safe is how many lines the runner may carry whatever anyone wishes, and which bound that is.
func (r *probed) safe(now time.Time, p *probe) (lines int, why Reason) {
	lines, why = p.cfg.PerRunner, ReasonRunnerLimit
	// What is not seen may have grown: by a deviation for each Soft that it is old.
	unseen := 0.0
	if !r.metricsAt.IsZero() {
		unseen = float64(now.Sub(r.metricsAt)) / float64(p.cfg.Doubt.Soft)
	}
	if seqs := p.engine.MaxSeqs; seqs > 0 {
		interactive := r.slotsPeak.most(now) + float64(unseen*math.Sqrt(r.running.variance))
		// An engine of few sequences keeps at most half of them free.
		kept := min(float64(p.cfg.Reserve.Slots), float64(seqs)/2)
		if slots := max(1, int(float64(seqs)-interactive-kept)); slots < lines {
			lines, why = slots, ReasonSlots
		}
	}
	if capacity := p.kvTokens(r); capacity > 0 && p.mix.prompt > 0 {
		interactive := float64(p.cfg.Reserve.Growth*r.kvPeak.most(now)) +
			float64(unseen*math.Sqrt(r.context.variance))
		room := float64(p.cfg.Reserve.KV*capacity) - interactive
		if fitting := max(1, int(p.fitting(room))); fitting < lines {
			lines, why = fitting, ReasonKV
		}
	}
	return lines, why
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
