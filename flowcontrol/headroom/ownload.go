package headroom

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// ownLoad is what a runner carries of batch work, as far as its observations show it.
type ownLoad struct {
	lines      int
	prefilling int     // prompt tokens not known to be computed
	context    float64 // KV tokens that the lines hold
	computed   float64 // prompt tokens known to be computed so far; only grows
	output     float64 // tokens produced so far; only grows
	answered   float64 // lines so far; only grows
	shortGaps  float64 // token gaps of the short answers so far; only grows

	born float64 // the sum of the seconds at which its lines started, after the first of all
	zero time.Time

	latest ownSample      // after the last observation
	past   [128]ownSample // a ring, of samples at least sampleEvery apart
	last   int
}

// sampleEvery is how finely the past is known: metrics are those of a moment, and lines start and
// end several times a second.
const sampleEvery = 500 * time.Millisecond

// ownSample is the own load at a time. waiting is the number of lines whose prompts wait.
type ownSample struct {
	at                        time.Time
	lines, context            float64
	computed, output, waiting float64
	answered, shortGaps       float64
}

// newOwnLoad returns the load of a runner that joins with so many lines in flight, which it may
// have kept through a reload. How long they have run by then is not known.
func newOwnLoad(now time.Time, lines, prefilling int) ownLoad {
	l := ownLoad{lines: lines, prefilling: prefilling}
	if lines > 0 {
		l.zero, l.latest = now, ownSample{at: now, lines: float64(lines)}
	}
	return l
}

// decoding estimates the number of lines whose prompts are computed, for prompts of that mean
// length.
func (l *ownLoad) decoding(prompt float64) float64 {
	return max(0, float64(l.lines)-float64(l.prefilling)/max(prompt, 1))
}

// carrying is an observation that shows what its runner carries.
type carrying interface {
	flowcontrol.Observation
	Carried() flowcontrol.Load
}

// observe updates the load by an observation of the runner.
func (l *ownLoad) observe(now time.Time, o carrying, sizes *lineSizes) {
	if l.zero.IsZero() {
		l.zero = now
	}
	at, carried := now.Sub(l.zero).Seconds(), o.Carried()
	switch o := o.(type) {
	case *flowcontrol.Started:
		l.born += at
		l.context += float64(o.PromptTokens)
		l.promptsComputed(o.PromptTokens-o.CachedTokens, carried)
	case *flowcontrol.FirstToken:
		l.promptsComputed(0, carried)
	case *flowcontrol.TokenGaps:
		decoded := float64(o.Gaps) * l.decoding(sizes.compute)
		l.context += decoded
		l.output += decoded
	case *flowcontrol.Answered:
		l.born -= at - o.Latency.Seconds()
		l.context -= float64(o.PromptTokens + o.OutputTokens)
		l.promptsComputed(0, carried)
		l.answered++
		if o.OutputTokens < fewOutput {
			l.shortGaps += float64(max(0, o.OutputTokens-1))
		}
	case *flowcontrol.Shed: // at once
		l.born -= at
		l.context -= sizes.prompt
	case *flowcontrol.Broken: // nothing says which
		l.born -= l.born / max(float64(l.lines), 1)
		l.context -= sizes.prompt
	case *flowcontrol.Evicted:
		l.born -= at - o.Latency.Seconds()
		l.context -= sizes.prompt
	}
	if carried.InFlight == 0 {
		l.born = 0
	}
	l.carry(now, carried, sizes)
}

// promptsComputed counts the prompt tokens that waited before the observation, or started with it,
// and wait no longer.
func (l *ownLoad) promptsComputed(started int, carried flowcontrol.Load) {
	l.computed += float64(max(0, l.prefilling+started-carried.Prefilling))
}

// carry takes over what the runner carries now, and keeps it for later.
func (l *ownLoad) carry(now time.Time, carried flowcontrol.Load, sizes *lineSizes) {
	l.lines, l.prefilling = carried.InFlight, carried.Prefilling
	l.context = max(l.context, float64(l.lines)*min(sizes.prompt, 1))
	// Tokens that were never observed to leave must not count for ever.
	longest := 3 * max(sizes.output, sizes.expected, sizes.latestOutput, assumedOutput)
	if most := float64(l.lines) * (sizes.prompt + longest); l.context > most {
		l.context = most
	}
	l.latest = ownSample{
		at: now, lines: float64(l.lines), context: l.context, computed: l.computed,
		output: l.output, answered: l.answered, shortGaps: l.shortGaps,
		waiting: float64(l.prefilling) / max(sizes.compute, 1),
	}
	if now.Sub(l.past[l.last].at) >= sampleEvery {
		l.last = (l.last + 1) % len(l.past)
		l.past[l.last] = l.latest
	}
}

// held estimates the number of KV tokens that the lines hold by the time that they have run. prompt
// is the mean prompt in tokens, and iteration the mean iteration in milliseconds. Without streams,
// context lacks what they have produced.
func (l *ownLoad) held(now time.Time, prompt, iteration float64) float64 {
	lines := float64(l.lines)
	ages := lines*now.Sub(l.zero).Seconds() - l.born
	return max(l.context, lines*prompt+max(0, 1000*ages/max(iteration, 1)))
}

// at returns the load at an instant, to be subtracted from what metrics showed then; the oldest
// known one if the instant is too long ago.
func (l *ownLoad) at(t time.Time) ownSample {
	if !l.latest.at.After(t) { // the ring may lack the end of a line, and nothing has come since
		return l.latest
	}
	oldest := ownSample{}
	for i := range l.past {
		entry := &l.past[(l.last+len(l.past)-i)%len(l.past)]
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
