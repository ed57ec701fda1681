package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol"
)

// interactive estimates the load of interactive requests on a runner: the load that the runner's
// metrics show, minus that of its batch lines.
type interactive struct {
	seenAt     time.Time           // Sampled of the last metrics that changed; zero: none
	every      time.Duration       // between the last two
	counters   flowcontrol.Reading // the last one
	ownOutput  float64             // ownLoad.output at that time
	running    spread              // requests
	context    spread              // KV tokens
	promptRate spread              // tokens per second
	waiting    float64             // requests, at seenAt
	demand     float64             // requests that run or wait
	kvTokens   float64             // what the KV cache holds; 0: metrics do not say
	gauged     bool                // metrics have shown the number of requests or the KV usage
	uncounted  uncounted
}

// fewGaps is the part of the token gaps that those of users must have. Otherwise those of lines
// with short answers, which are counted a moment earlier or later, hide them.
const fewGaps = 0.2

// busyTokens is how many output tokens of batch lines an engine's counters must show.
const busyTokens = 32

// shown holds what metrics show besides the load of interactive requests.
type shown struct {
	preempted bool // the engine preempted a request since the metrics before
	// iteration is the time of an iteration by the engine's counters, in milliseconds over a
	// period; 0: the counters do not show it.
	iteration  float64
	iterations float64 // how many there were
	period     time.Duration
	// kvHeld is how many KV tokens interactive requests hold, if kvShown.
	kvHeld  float64
	kvShown bool
}

// read updates the estimate from metrics of the engine. configured is the capacity of the KV cache
// in tokens, used if the metrics do not report it. alone is how long an iteration takes at least:
// lines with short answers decode in short iterations, between prompts, so their gaps say nothing
// about those of users. It returns false if the metrics have not changed, because their source then
// reports old values.
func (in *interactive) read(
	m *flowcontrol.Reading, own *ownLoad, configured int, alone float64,
) (s shown, ok bool) {
	if !m.Sampled.After(in.seenAt) {
		return s, false
	}
	then := own.at(m.Sampled)
	busy := then.output-in.ownOutput >= busyTokens
	if !in.seenAt.IsZero() && busy && m.OutputTokens == in.counters.OutputTokens {
		return s, false
	}
	in.gauged = in.gauged || !showsNoLoad(m)
	before, at := in.counters, in.seenAt
	if !at.IsZero() {
		in.every = m.Sampled.Sub(at)
	}
	past := own.at(at)
	in.counters, in.seenAt, in.ownOutput = *m, m.Sampled, then.output
	window := 6 * m.Sampled.Sub(at)
	if at.IsZero() || window > time.Minute {
		window = time.Minute
	}
	waiting := 0.0
	if m.Waiting >= 0 { // it may be absent, which is not a number
		waiting = m.Waiting
	}
	in.waiting = max(0, waiting-then.waiting)
	if m.Running >= 0 {
		ours := max(0, then.lines-min(then.waiting, waiting))
		running := max(0, m.Running-ours)
		in.running.add(m.Sampled, window, running)
		in.demand = running + in.waiting
	}
	if m.KVTokens > 0 {
		in.kvTokens = m.KVTokens
	}
	if capacity := in.capacity(configured); m.KVUsed >= 0 && capacity > 0 {
		held := m.KVUsed * capacity
		in.context.add(m.Sampled, window, max(0, held-then.context))
	}
	cached := m.CachedTokens - before.CachedTokens
	if !(cached >= 0) {
		cached = 0
	}
	if prompts := m.PromptTokens - before.PromptTokens; !at.IsZero() && prompts >= 0 {
		computed := prompts - cached - (then.computed - past.computed)
		// What is cached counts when a request is admitted, and its prompt with its first token. So
		// readings between them show too little, then too much, and a bound on each would add up.
		// Where nothing is cached, the bound harvested more in simulations.
		if cached == 0 {
			computed = max(0, computed)
		}
		in.promptRate.add(m.Sampled, window, computed/m.Sampled.Sub(at).Seconds())
	}
	gaps, took := m.TokenGaps-before.TokenGaps,
		1000*(m.TokenGapTime-before.TokenGapTime)
	ours := then.shortGaps - past.shortGaps
	if ours > 0 && gaps-ours > fewGaps*gaps {
		mean, lines := took/gaps, max(1, (then.lines+past.lines)/2)
		each := min(mean, mean-(mean-alone)/lines)
		gaps, took = gaps-ours, took-ours*each
	}
	if !at.IsZero() && gaps > 0 && took > 0 {
		s.period = m.Sampled.Sub(at)
		s.iteration = took / gaps
		s.iterations = min(gaps, milliseconds(s.period)/s.iteration)
		in.uncounted = uncounted{}
	} else if !at.IsZero() {
		s.period, s.iteration, s.iterations = in.uncounted.read(m.Sampled.Sub(at), m.Running,
			m.OutputTokens-before.OutputTokens)
	}
	if s.kvShown = m.KVUsed >= 0 && in.capacity(configured) > 0; s.kvShown {
		s.kvHeld = max(0, m.KVUsed*in.capacity(configured)-then.context)
	}
	s.preempted = !at.IsZero() && m.Preemptions > before.Preemptions
	return s, true
}

// showsNoLoad reports whether the gauges of metrics are absent, as those of an engine are that
// keeps showing requests which are gone.
func showsNoLoad(m *flowcontrol.Reading) bool {
	return math.IsNaN(m.Running) && math.IsNaN(m.Waiting) && math.IsNaN(m.KVUsed)
}

// forget makes the load unknown. The engine is reached, but no longer shows its load: what it last
// showed may have been load that is gone, which would keep lines away for as long as no other
// request comes.
func (in *interactive) forget() {
	*in = interactive{kvTokens: in.kvTokens, gauged: true}
}

// capacity returns how many tokens the KV cache holds: what metrics say, or else configured; 0:
// unknown.
func (in *interactive) capacity(configured int) float64 {
	if in.kvTokens > 0 {
		return in.kvTokens
	}
	return float64(configured)
}

// load returns the mean load.
func (in *interactive) load() costmodel.Load {
	return costmodel.Load{Running: in.running.mean, Context: in.context.mean,
		PromptRate: in.prompts(), PromptMean: typicalContext}
}

// shownRunning returns how many requests run; not a number if the last metrics don't show it, which
// control takes for what it was, and people must not take for none.
func (in *interactive) shownRunning() float64 {
	if !(in.counters.Running >= 0) {
		return math.NaN()
	}
	return in.running.mean
}

// shownWaiting returns how many requests wait; not a number if the last metrics don't show it.
func (in *interactive) shownWaiting() float64 {
	if !(in.counters.Waiting >= 0) {
		return math.NaN()
	}
	return in.waiting
}

// prompts returns how many prompt tokens are computed in a second.
func (in *interactive) prompts() float64 { return max(0, in.promptRate.mean) }
