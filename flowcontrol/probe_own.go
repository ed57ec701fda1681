package flowcontrol

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// own is what a runner carries of ours, as well as it can be followed from here.
type own struct {
	lines      int
	prefilling int     // prompt tokens not known to be computed
	context    float64 // tokens that our lines hold in KV
	computed   float64 // prompt tokens known to be computed, so far; only grows
	output     float64 // tokens produced, so far; only grows

	past [128]ownAt // a ring, of looks ownEvery apart at least
	last int
}

// ownEvery is how finely the past is known: metrics are about a moment, and lines come and go
// several times a second.
const ownEvery = 500 * time.Millisecond

// ownAt is how it was at a time.
type ownAt struct {
	at                        time.Time
	lines, context            float64
	computed, output, waiting float64
}

// decoding estimates how many of our lines have their prompts computed.
func (w *own) decoding(prompt float64) float64 {
	return max(0, float64(w.lines)-float64(w.prefilling)/max(prompt, 1))
}

// see takes over what an observation says of the runner.
func (w *own) see(now time.Time, o Observation, mix *mixture) {
	before := w.prefilling
	switch o.Kind {
	case Started:
		before += o.PromptTokens
		w.context += float64(o.PromptTokens)
		fallthrough
	case FirstToken, Answered:
		w.computed += float64(max(0, before-o.Prefilling))
	}
	switch o.Kind {
	case TokenGaps:
		decoded := float64(float64(o.Gaps) * w.decoding(mix.prompt))
		w.context += decoded
		w.output += decoded
	case Answered:
		w.context -= float64(o.PromptTokens + o.OutputTokens)
	case Shed, Broken, Recalled:
		w.context -= mix.prompt
	}
	w.lines, w.prefilling = o.InFlight, o.Prefilling
	w.context = max(w.context, float64(float64(w.lines)*min(mix.prompt, 1)))
	// What went unseen, an answer while nobody looked, must not be carried along for ever.
	if most := mix.prompt + float64(3*max(mix.output, someOutput)); w.context > float64(
		float64(w.lines)*most) {
		w.context = float64(w.lines) * most
	}
	if now.Sub(w.past[w.last].at) >= ownEvery {
		w.last = (w.last + 1) % len(w.past)
		w.past[w.last] = ownAt{
			at: now, lines: float64(w.lines), context: w.context, computed: w.computed,
			output:  w.output,
			waiting: float64(w.prefilling) / max(mix.prompt, 1),
		}
	}
}

// at is how it was at an instant, to be subtracted from what somebody saw then; the oldest that is
// remembered if that is too long ago.
func (w *own) at(t time.Time) ownAt {
	oldest := ownAt{}
	for i := range w.past {
		entry := &w.past[(w.last+len(w.past)-i)%len(w.past)]
		if entry.at.IsZero() {
			break
		}
		oldest = *entry
		if !entry.at.After(t) {
			break
		}
	}
	return oldest
}

// mixture is what lines are like: means over the last hundred answers.
type mixture struct {
	prompt, output       float64
	expected             float64 // output of those that started, as the planner knows their jobs
	newPrompt, newOutput float64 // prompt and expected of the last few
	// that a line holds, over those that run at one time: long ones are met more often
	context       float64
	square        float64 // of it, in the mean
	started, seen int
	answers       int // ever
}

const (
	mixtureMemory = 100
	// latestMemory is how many starts show what starts now, few enough for a pool of one runner to
	// see another kind of job at once.
	latestMemory = 20
	mixtureKnown = 30 // answers from which the means are believed
	// otherKind is by how much lines must be expected to be longer than those answered for being of
	// another kind: means of a hundred answers differ by less.
	otherKind = 1.5
	// What a line is taken to have before any was seen: as plan.CostConfig's default.
	someOutput = 256
)

// start takes note of a line that starts, with its prompt and the answer that is expected; 0: of
// its job nothing is known, and it may be a long one.
func (m *mixture) start(prompt, output int) {
	if prompt <= 0 {
		return
	}
	if output <= 0 {
		output = someTail
	}
	m.started = min(m.started+1, mixtureMemory)
	m.prompt += (float64(prompt) - m.prompt) / float64(m.started)
	m.expected += (float64(output) - m.expected) / float64(m.started)
	few := float64(min(m.started, latestMemory))
	m.newPrompt += (float64(prompt) - m.newPrompt) / few
	m.newOutput += (float64(output) - m.newOutput) / few
}

func (m *mixture) answer(prompt, output int) {
	if output <= 0 {
		return
	}
	out, held := float64(output), float64(prompt)+float64(float64(output)/2)
	m.answers++
	m.seen = min(m.seen+1, mixtureMemory)
	weight := 1 / float64(m.seen)
	// Each answer counts in the context by how long it ran.
	total := m.output + float64(weight*(out-m.output))
	long := float64(weight*out) / total
	m.context += float64(long * (held - m.context))
	in := float64(prompt)
	m.square += float64(long * (float64(in*in) + float64(in*out) + float64(out*out)/3 - m.square))
	m.output = total
}

// latest is what lines are like that start now.
func (m *mixture) latest() costmodel.Mix {
	return costmodel.Mix{Prompt: m.newPrompt, Output: m.newOutput}
}

func (m *mixture) mix() costmodel.Mix {
	mix := costmodel.Mix{Prompt: m.prompt, Output: m.output, Context: m.context}
	if m.seen == 0 {
		mix.Output, mix.Context = someOutput, m.prompt+someOutput/2
	}
	return mix
}
