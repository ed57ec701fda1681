package headroom

import (
	"math"

	"github.com/tidefill/tidefill/costmodel"
)

// lineSizes estimates the sizes of batch lines: means over the last hundred answers.
type lineSizes struct {
	prompt, output float64 // tokens
	// compute is the part of the prompt that is not expected in a prefix cache.
	compute float64
	// expected is the output of lines that started, as the planner predicts it from their jobs.
	expected float64
	// Of the last few starts.
	latestPrompt, latestOutput float64
	// latestLong is the mean of the longest answers that they may have, in tokens, as far as is
	// known.
	latestLong float64
	// context is the number of tokens that a line holds, and apart the number of those that were
	// not in a prefix cache.
	context, apart heldTokens
	// computeSquare is the mean of the square of compute.
	computeSquare float64

	started, seen int // within the means
	answers       int // in total
}

const (
	// sizesWindow is the number of lines that the means look back over.
	sizesWindow = 100
	// latestWindow is the number of starts that show what starts now, few enough for a pool of one
	// runner to notice another kind of job at once.
	latestWindow = 20
	// sizesKnown is the number of answers from which the means are reliable.
	sizesKnown = 30
	// otherKind is the ratio of expected to answered output from which lines count as another kind:
	// means of a hundred answers differ by less.
	otherKind = 1.5
	// assumedOutput is the output assumed of a line before any was seen.
	assumedOutput = costmodel.AssumedOutputTokens
	// assumedTail is the output assumed of lines while few have ended: those that end first are the
	// short ones.
	assumedTail = 1024
	// heldShare is the part of its answer that a line holds on average while it runs, where answers
	// differ in length.
	heldShare = 0.6
)

// start adds a line that starts, with its prompt and the expected output, both in tokens. If output
// is 0, nothing is known of its job yet, and the line may be long. long is the longest answer that
// it may have, in tokens.
func (s *lineSizes) start(prompt, cached, output, long int) {
	if prompt <= 0 {
		return
	}
	if output <= 0 {
		output = assumedTail
	}
	s.started = min(s.started+1, sizesWindow)
	s.prompt += (float64(prompt) - s.prompt) / float64(s.started)
	compute := float64(max(1, prompt-cached))
	s.compute += (compute - s.compute) / float64(s.started)
	s.computeSquare += (compute*compute - s.computeSquare) / float64(s.started)
	s.expected += (float64(output) - s.expected) / float64(s.started)
	few := float64(min(s.started, latestWindow))
	s.latestPrompt += (compute - s.latestPrompt) / few
	s.latestOutput += (float64(output) - s.latestOutput) / few
	s.latestLong += (float64(long) - s.latestLong) / few
}

// longPrompts returns the mean length of the prompts whose tokens are computed at a time, as a
// multiple of the mean prompt. Long ones take more of that time.
func (s *lineSizes) longPrompts() float64 {
	if s.compute <= 0 {
		return 1
	}
	return max(1, s.computeSquare/(s.compute*s.compute))
}

// shared returns the number of tokens of a prompt that are expected in a prefix cache.
func (s *lineSizes) shared() float64 { return max(0, s.prompt-s.compute) }

// answer adds an answered line, with its prompt and the number of its tokens that were cached.
func (s *lineSizes) answer(prompt, cached, output int) {
	if output <= 0 {
		return
	}
	out := float64(output)
	s.answers++
	s.seen = min(s.seen+1, sizesWindow)
	w := 1 / float64(s.seen)
	// The weight of an answer in the context is the time that it ran.
	total := s.output + w*(out-s.output)
	long := w * out / total
	s.context.add(long, float64(prompt), out)
	s.apart.add(long, float64(max(0, prompt-cached)), out)
	s.output = total
}

// heldTokens is the mean number of tokens that a line holds, over the lines that run at one time,
// and the mean of its square. Long lines have a larger weight there than in all lines.
type heldTokens struct{ mean, square float64 }

// add adds a line with a weight. While it runs it holds its prompt and from none to all of its
// answer.
func (h *heldTokens) add(weight, prompt, output float64) {
	h.mean += weight * (prompt + output/2 - h.mean)
	h.square += weight * (prompt*prompt +
		prompt*output + output*output/3 - h.square)
}

func (h heldTokens) deviation() float64 {
	return math.Sqrt(max(0, h.square-h.mean*h.mean))
}

// latest returns the sizes of the lines that start now.
func (s *lineSizes) latest() costmodel.Mix {
	return costmodel.Mix{Prompt: s.latestPrompt, Output: s.latestOutput}
}

// mix returns the sizes of lines. lines is the number of those under way, and context the number of
// tokens that they hold together. Long lines under way show that lines are longer than the means
// say. They do so until enough have ended, and when a job of another kind has started. The
// planner's predictions show that too.
func (s *lineSizes) mix(lines, context float64) costmodel.Mix {
	mix := costmodel.Mix{Prompt: s.prompt, Output: s.output, Context: s.context.mean}
	if s.seen == 0 {
		mix.Output, mix.Context = assumedOutput, s.prompt+assumedOutput/2
	}
	usual := mix.Output / 2 // age of lines under way if all are alike
	if s.seen >= sizesKnown {
		usual = 1.5 * mix.Output // long ones are more likely met
	}
	if age := context/max(lines, 1) - mix.Prompt; age > usual {
		mix.Output, mix.Context = 2*age, mix.Prompt+age
	}
	// Lines of another kind become as old on average, while they run.
	if expected := max(s.expected, s.latestOutput); expected > otherKind*mix.Output {
		mix.Output, mix.Context = expected, max(mix.Context, mix.Prompt+expected)
	}
	mix.Context = mix.MeanContext()
	mix.Prompt = s.compute
	return mix
}

// lineKV is the number of KV tokens that a line holds, over the lines that will run at one time.
type lineKV struct{ mean, deviation float64 }

// kv returns the number of KV tokens that a line holds. Lines under way hold less than they will,
// and those that have ended were the short ones. So while few have ended, the age of those under
// way counts too, and as if one had ended with assumedTail. ages is the sum of the output tokens of
// lines under way.
func (s *lineSizes) kv(mix costmodel.Mix, lines, ages float64) lineKV {
	return s.kvOf(lineKV{mix.MeanContext(), s.context.deviation()}, s.prompt, lines, ages)
}

// kvApart returns the number of KV tokens that a line holds besides what lines share, which the
// cache holds once.
func (s *lineSizes) kvApart(mix costmodel.Mix, lines, ages float64) lineKV {
	kv := lineKV{max(0, mix.MeanContext()-s.shared()), s.apart.deviation()}
	return s.kvOf(kv, s.compute, lines, ages)
}

// kvOf raises what answered lines have held by what those under way may still hold. prompt is the
// mean of their prompts.
func (s *lineSizes) kvOf(kv lineKV, prompt, lines, ages float64) lineKV {
	kv.mean = max(kv.mean, prompt+heldShare*s.latestLong)
	ended := float64(s.answers)
	// The share of the uncertainty that is left: two generations of lines are enough.
	young := 1 - ended/(2*lines+1)
	if young <= 0 {
		return kv
	}
	tail := (ended*s.output + ages + assumedTail) / (ended + 1)
	tail = min(tail, assumedTail+4*ages/max(lines, 1))
	// Of answers that end at any time, those under way are as old as the mean answer is long, and
	// differ as much.
	kv.mean += young * max(0, prompt+tail-kv.mean)
	kv.deviation += young * max(0, tail-kv.deviation)
	return kv
}

// fitting returns the number of lines that fit into some KV tokens of which users may want a part.
// Each line counts as large as it will be: n lines take n·mean, and √n·deviations·deviation more at
// most. The most that users and lines take rarely comes at one time, so both add up by their
// squares.
func (kv lineKV) fitting(tokens, wanted, deviations float64) float64 {
	if !(tokens > wanted) {
		return 0
	}
	all, users, each := tokens/kv.mean, wanted/kv.mean, deviations*kv.deviation/kv.mean
	variance := each * each
	root := math.Sqrt(variance*(4*all+variance) +
		4*users*users)
	return 2 * (all - users) * (all + users) / (2*all + variance + root)
}
