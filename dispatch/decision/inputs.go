package decision

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// inputs is what flow control was given about a runner. Readings are shared, so keeping the last
// one costs nothing when it arrives.
type inputs struct {
	metrics, capabilities *flowcontrol.Reading // the last ones; nil: none
	// before is the reading of metrics that rates are counted from: the last one at the sample
	// before, unless no other has come since.
	before *flowcontrol.Reading
	rates  rates
	// preempted counts preemptions since the runner was first read.
	preempted growth
	first     firstTokens

	// Lines since the runner joined.
	answered, shed, broken, evicted float64
	// gaps and gapTime are those between tokens of streamed lines since the last sample.
	gaps    int
	gapTime time.Duration
}

// rates are what the counters of an engine grew by between two readings, for each second.
type rates struct {
	prompt, cached, output, answers Number
	tokenTime                       Number // between two tokens of a request, in milliseconds
}

// growth sums up the growth of a counter that starts again when its source restarts.
type growth struct {
	known     bool // it has been shown
	last, sum float64
}

func newInputs() *inputs { return &inputs{rates: unknownRates} }

var unknownRates = rates{Unknown, Unknown, Unknown, Unknown, Unknown}

func (in *inputs) read(r *flowcontrol.Reading) {
	switch r.Source {
	case flowcontrol.Metrics:
		in.metrics = r
		in.preempted.read(r.Preemptions)
		in.first.read(r.Sampled, r.FirstTokenTimes)
	case flowcontrol.Capabilities:
		in.capabilities = r
	case flowcontrol.Gateway: // it is about the pool, and no input of a runner
	}
}

// ended counts a line as the observation that flow control gets of it.
func (in *inputs) ended(o plan.Outcome) {
	switch o {
	case plan.Evicted: // counted when it was decided
	case plan.Shed:
		in.shed++
	case plan.TimedOut, plan.Unreachable, plan.Died:
		in.broken++
	default:
		in.answered++
	}
}

// appendTo appends the columns of a sample, and begins the next one.
func (in *inputs) appendTo(values *[runnerColumns]Number, now time.Time) {
	v := values
	if m := in.metrics; m != nil {
		in.count(m)
		v[metricsAge] = seconds(now, m.Sampled)
		v[running], v[waiting] = Number(m.Running), Number(m.Waiting)
		v[kvUsed], v[kvTokens] = Number(m.KVUsed), Number(m.KVTokens)
		v[promptRate], v[cachedRate] = in.rates.prompt, in.rates.cached
		v[outputRate], v[answerRate] = in.rates.output, in.rates.answers
		v[readTokenTime], v[preemptions] = in.rates.tokenTime, in.preempted.number()
	}
	if c := in.capabilities; c != nil {
		v[capabilitiesAge] = seconds(now, c.Sampled)
		v[queue], v[saidKVUsed] = Number(c.Waiting), Number(c.KVUsed)
	}
	v[answered], v[shed], v[broken] = Number(in.answered), Number(in.shed), Number(in.broken)
	if in.gaps > 0 {
		v[streamedTokenTime] = Number(1000 * in.gapTime.Seconds() / float64(in.gaps))
	}
	in.gaps, in.gapTime = 0, 0
}

// count computes the rates up to a reading of metrics, if it is newer than the one before.
func (in *inputs) count(m *flowcontrol.Reading) {
	b := in.before
	if b != nil && !m.Sampled.After(b.Sampled) {
		return
	}
	in.before, in.rates = m, unknownRates
	if b == nil {
		return
	}
	per := func(before, now float64) Number {
		if !(now >= before) { // absent, or the engine has restarted
			return Unknown
		}
		return Number((now - before) / m.Sampled.Sub(b.Sampled).Seconds())
	}
	in.rates.prompt = per(b.PromptTokens, m.PromptTokens)
	in.rates.cached = per(b.CachedTokens, m.CachedTokens)
	in.rates.output = per(b.OutputTokens, m.OutputTokens)
	in.rates.answers = per(b.Requests, m.Requests)
	if gaps, took := m.TokenGaps-b.TokenGaps, m.TokenGapTime-b.TokenGapTime; gaps > 0 && took > 0 {
		in.rates.tokenTime = Number(1000 * took / gaps)
	}
}

func (g *growth) read(now float64) {
	if !(now >= 0) { // absent
		return
	}
	if g.known && now > g.last {
		g.sum += now - g.last
	}
	g.last, g.known = now, true
}

func (g *growth) number() Number {
	if !g.known {
		return Unknown
	}
	return Number(g.sum)
}
